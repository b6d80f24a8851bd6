import type { ComponentChildren } from 'preact'

interface DialogFormProps {
  /** The label of the button that submits, such as `Send`. */
  readonly action: string
  /** `danger` for what cannot be undone. @default primary */
  readonly kind?: 'primary' | 'danger'
  /** `true` while the form cannot be submitted. @default false */
  readonly disabled?: boolean
  /** The label of the button that leaves the form. @default Cancel */
  readonly leave?: string
  readonly onLeave: () => void
  readonly onSubmit: () => void
  /** The fields, and the error of the last try. */
  readonly children: ComponentChildren
}

/** A form in a dialog with its two buttons: one leaves it, one submits it. */
export function DialogForm(props: DialogFormProps) {
  const { action, kind = 'primary', disabled = false, leave = 'Cancel', onLeave, onSubmit, children } = props
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (!disabled) onSubmit()
      }}
    >
      {children}
      <div class="buttons">
        <button type="button" onClick={onLeave}>
          {leave}
        </button>
        <button type="submit" class={kind} disabled={disabled}>
          {action}
        </button>
      </div>
    </form>
  )
}
