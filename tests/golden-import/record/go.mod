module tacho/tests/golden-import/record

go 1.22
