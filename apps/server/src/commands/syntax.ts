/** An option of a command. */
export interface OptionDescription {
  /** The placeholder of the value. @default a switch without a value */
  readonly value?: string
  readonly default?: string
  readonly required?: true
  readonly help: string
}

export type Options = Readonly<Record<string, OptionDescription>>

/** The form of a command's line. */
export interface Syntax {
  /** One word, or two: `send`, `log read`. */
  readonly name: string
  /** The line without the options that every command of its kind has. */
  readonly usage: string
  /** The least and the most words after the name. */
  readonly words: readonly [least: number, most: number]
  readonly options: Options
}
