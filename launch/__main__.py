"""``python -m launch VERB …``: the same door as ``malmoi``, for torchrun and deepspeed launches."""

from launch.cli import main

if __name__ == "__main__":
    main()
