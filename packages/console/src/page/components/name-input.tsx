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
