import type { ComponentChildren, TargetedInputEvent } from 'preact'

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
export function TextField({ label, hint, ...input }: InputFieldProps) {
  return (
    <Field label={label} hint={hint}>
      <input {...inputOf(input)} autocomplete="off" spellcheck={false} />
    </Field>
  )
}

interface NumberFieldProps extends InputFieldProps {
  readonly min: number
  readonly max?: number
}

export function NumberField({ label, hint, min, max, ...input }: NumberFieldProps) {
  return (
    <Field label={label} hint={hint}>
      <input {...inputOf(input)} type="number" min={min} max={max} step="1" />
    </Field>
  )
}

function inputOf({ required = false, value, onChange }: Omit<InputFieldProps, 'label' | 'hint'>) {
  return {
    required,
    value,
    onInput: ({ currentTarget }: TargetedInputEvent<HTMLInputElement>) => onChange(currentTarget.value),
  }
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
