"""``python -m launch VERB …``: the same as ``malmoi``, for torchrun and deepspeed launches."""

if __name__ == "__main__":
    from malmoi import main

    main()
