import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

import { setQuery, usePlace } from '../router/location.ts'

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

interface InputFieldProps {
  readonly label: ComponentChildren
  readonly hint?: ComponentChildren
  readonly required?: boolean
  readonly value: string
  readonly onChange: (value: string) => void
}

/** A line of text, such as the name of a channel. The browser neither completes nor corrects it. */
export function TextField({ label, hint, required = false, value, onChange }: InputFieldProps) {
  return (
    <Field label={label} hint={hint}>
      <input
        required={required}
        autocomplete="off"
        spellcheck={false}
        value={value}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    </Field>
  )
}

interface NumberFieldProps extends InputFieldProps {
  readonly min: number
  readonly max?: number
}

export function NumberField({ label, hint, required = false, min, max, value, onChange }: NumberFieldProps) {
  return (
    <Field label={label} hint={hint}>
      <input
        type="number"
        required={required}
        min={min}
        max={max}
        step="1"
        value={value}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    </Field>
  )
}

interface TextAreaProps extends InputFieldProps {
  readonly rows: number
  /** `true` for fields that need less than 8 rem. @default false */
  readonly short?: boolean
  /** `true` for text that people read: the browser marks errors. @default false */
  readonly prose?: boolean
}

/** Several lines of text, such as the body of a message. */
export function TextArea(props: TextAreaProps) {
  const { label, hint, rows, short = false, prose = false, required = false, value, onChange } = props
  return (
    <Field label={label} hint={hint}>
      <textarea
        class={short ? 'short' : undefined}
        rows={rows}
        required={required}
        spellcheck={prose}
        value={value}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    </Field>
  )
}

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
