"""``python -m launch VERB …``: the same as ``malmoi``, for torchrun and deepspeed launches."""

from launch.checks.guard import check_start

if __name__ == "__main__":
    check_start()
    from launch.cli import main

    main()
