import type Database from 'better-sqlite3'

/** The number of rows in one `INSERT`. A row costs a quarter less than with one statement each. */
const ROWS = 8

type Value = number | string | Uint8Array

/** Collects new rows of a table, so that several share a statement. */
export class RowBatch {
  readonly #insertOne
  readonly #insertSeveral
  readonly #width: number
  /** The values of the collected rows, concatenated. Push those of a row, and call {@link added}. */
  values: Value[] = []

  /** @param parameters The SQL for the values of one row, with `width` parameters */
  constructor(
    database: Database.Database,
    {
      table,
      columns,
      parameters,
      width,
    }: Readonly<Record<'table' | 'columns' | 'parameters', string>> & {
      readonly width: number
    },
  ) {
    const insert = (rows: number): Database.Statement =>
      database.prepare(`INSERT INTO ${table} (${columns}) VALUES ${Array(rows).fill(`(${parameters})`).join(', ')}`)
    this.#insertOne = insert(1)
    this.#insertSeveral = insert(ROWS)
    this.#width = width
  }

  /** Returns `true` if all collected rows were inserted. */
  added(): boolean {
    if (this.values.length < ROWS * this.#width) return false
    const values = this.values
    this.values = []
    this.#insertSeveral.run(...values)
    return true
  }

  /** Inserts the collected rows. Call it before any read of them and before the commit. */
  flush(): void {
    const values = this.values
    if (values.length === 0) return
    this.values = []
    for (let at = 0; at < values.length; at += this.#width) this.#insertOne.run(...values.slice(at, at + this.#width))
  }

  /** Drops the collected rows after a rollback. */
  discard(): void {
    this.values = []
  }
}
