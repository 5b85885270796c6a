from kernelam.cli import main

main()
