"""Settings of the embedded sample: a seed and how many documents of each kind are written."""

from __future__ import annotations

from pydantic import BaseModel, Field


class SampleConfig(BaseModel, frozen=True, extra="forbid"):
    """The embedded sample. Its world (people, places, facts) has one size; the number of documents varies."""

    seed: int = Field(1, ge=0, description="Everything invented follows from this number.")
    news: int = Field(1_050, gt=0, description="News-like articles.")
    encyclopedia: int = Field(1_350, gt=0, description="Encyclopedic articles; names get several, in other words.")
    reviews: int = Field(900, gt=0, description="Reviews of films, books, restaurants, hotels and products.")
    dialogue: int = Field(450, gt=0, description="Bookings and service chats.")
