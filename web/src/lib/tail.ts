// The rows of a log that is read from its end: what happens comes on top, what is older below. One more row costs
// the same whether a hundred are there or a hundred thousand.

/** Rows on top of the first page before it is asked for again. */
export const ON_TOP_MAX = 5_000;

interface Keyed {
  id: string;
}

export class Tail<R extends Keyed> {
  /** What came since, the oldest first. */
  private readonly fresh: R[] = [];
  private readonly base: R[] = [];
  /** Where each row is: in `base` from 0, in `fresh` from -1 downwards. */
  private readonly places = new Map<string, number>();

  constructor(rows: R[]) {
    this.append(rows);
  }

  get count(): number {
    return this.fresh.length + this.base.length;
  }

  /** Rows that came on top. */
  get onTop(): number {
    return this.fresh.length;
  }

  get isFull(): boolean {
    return this.fresh.length >= ON_TOP_MAX;
  }

  /** The newest is 0. */
  at(index: number): R {
    const { fresh, base } = this;
    return (index < fresh.length ? fresh[fresh.length - 1 - index] : base[index - fresh.length])!;
  }

  /** A row that began, or one that is known and ended. */
  add(row: R): void {
    const place = this.places.get(row.id);
    if (place === undefined) {
      this.places.set(row.id, -this.fresh.length - 1);
      this.fresh.push(row);
    } else if (place < 0) this.fresh[-place - 1] = row;
    else this.base[place] = row;
  }

  /** The newest rows, asked for again, the newest first. Whether they join what is here; else there is a hole between
   *  them, and the log has to begin again. */
  renew(rows: R[]): boolean {
    if (!rows.some((row) => this.places.has(row.id))) return false;
    for (const row of [...rows].reverse()) this.add(row);
    return true;
  }

  /** Older rows. */
  append(rows: R[]): void {
    for (const row of rows) {
      if (this.places.has(row.id)) continue;
      this.places.set(row.id, this.base.length);
      this.base.push(row);
    }
  }
}
