import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

interface FieldProps {
  readonly label: ComponentChildren
  readonly hint?: ComponentChildren
  readonly children: ComponentChildren
}

/** A field of a form with its label. */
export function Field({ label, hint, children }: FieldProps) {
  return (
    <label class="field">
      <span>{label}</span>
      {children}
      {hint !== undefined && <small class="muted">{hint}</small>}
    </label>
  )
}

interface SearchProps {
  readonly label: string
  readonly value: string
  /** Called when the operator pauses or presses Enter. */
  readonly onChange: (value: string) => void
}

const PAUSE_MS = 250

/** A search field. The key `/` moves the focus to it. */
export function Search({ label, value, onChange }: SearchProps) {
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
      onChange(next)
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
  readonly label: string
  readonly value: Value
  readonly options: readonly (readonly [Value, string])[]
  readonly onChange: (value: Value) => void
}

/** A choice of few values, with its label inside the bar of filters. */
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

interface TabsProps<Value extends string> {
  readonly label: string
  readonly value: Value
  readonly options: readonly (readonly [Value, string])[]
  readonly onChange: (value: Value) => void
}

/** Buttons of which one is pressed, for views of the same thing. */
export function Segments<Value extends string>({ label, value, options, onChange }: TabsProps<Value>) {
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

interface NameInputProps {
  readonly value: string
  readonly onChange: (value: string) => void
}

/** The input of a required name, such as that of a channel. The browser neither completes nor corrects it. */
export function NameInput({ value, onChange }: NameInputProps) {
  return (
    <input
      required
      autocomplete="off"
      spellcheck={false}
      value={value}
      onInput={(event) => onChange(event.currentTarget.value)}
    />
  )
}
