const total = 1;
while (total < 10) {
  eval('total++');
}
return total;
