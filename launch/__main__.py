"""``python -m launch VERB …``: the same as ``malmoi``, for torchrun and deepspeed launches."""

from malmoi import main

if __name__ == "__main__":
    main()
