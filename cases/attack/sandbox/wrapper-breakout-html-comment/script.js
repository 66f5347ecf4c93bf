// An HTML comment, which scripts may contain.
return 1
-->});evil(
