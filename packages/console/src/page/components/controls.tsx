import { useEffect, useRef, useState } from 'preact/hooks'

import { setQuery, usePlace } from '../router/location.ts'

interface SearchProps {
  readonly label: string
  /** The parameter of the place that has the text. @default search */
  readonly name?: string
  /** Returns the changes of the place when the operator pauses or presses Enter. @default that of the parameter */
  readonly changes?: (text: string) => Readonly<Record<string, string | undefined>>
}

const PAUSE_MS = 250

/** A search field, whose text is in the place. The key `/` moves the focus to it. */
export function Search({ label, name = 'search', changes = (text) => ({ [name]: text }) }: SearchProps) {
  const { [name]: value = '' } = usePlace().query
  const [text, setText] = useState(value)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const reported = useRef(value)
  useEffect(() => {
    // The field's own text comes back when the operator may have typed on.
    if (value === reported.current) return
    reported.current = value
    setText(value)
  }, [value])
  useEffect(() => () => clearTimeout(timer.current), [])
  const changed = (next: string, pause: number): void => {
    setText(next)
    clearTimeout(timer.current)
    timer.current = setTimeout(() => {
      reported.current = next
      setQuery(changes(next))
    }, pause)
  }
  return (
    <span class="search">
      <input
        type="search"
        aria-label={label}
        placeholder={label}
        aria-keyshortcuts="/"
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={(event) => changed(event.currentTarget.value, PAUSE_MS)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') changed(event.currentTarget.value, 0)
          else if (event.key === 'Escape') event.currentTarget.blur()
        }}
      />
      <kbd aria-hidden="true">/</kbd>
    </span>
  )
}

interface SelectProps<Value extends string> {
  /** For a choice outside a field, which has the label. */
  readonly label?: string
  readonly value: Value
  readonly options: readonly (readonly [Value, string])[]
  readonly onChange: (value: Value) => void
}

/** A choice of few values. */
export function Select<Value extends string>({ label, value, options, onChange }: SelectProps<Value>) {
  return (
    <select
      aria-label={label}
      value={value}
      onChange={(event) => {
        const chosen = options.find(([one]) => one === event.currentTarget.value)
        if (chosen !== undefined) onChange(chosen[0])
      }}
    >
      {options.map(([one, text]) => (
        <option key={one} value={one}>
          {text}
        </option>
      ))}
    </select>
  )
}

interface SegmentsProps<Value extends string> extends SelectProps<Value> {
  readonly label: string
}

/** Buttons of which one is pressed, for views of the same thing. */
export function Segments<Value extends string>({ label, value, options, onChange }: SegmentsProps<Value>) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {options.map(([one, text]) => (
        <button key={one} type="button" aria-pressed={one === value} onClick={() => onChange(one)}>
          {text}
        </button>
      ))}
    </div>
  )
}
