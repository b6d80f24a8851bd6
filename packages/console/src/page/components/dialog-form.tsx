import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'

import { CallError, useCall } from './call.tsx'
import { Dialog } from './dialog.tsx'
import { TextField } from './fields.tsx'

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

interface ActionFormProps extends Omit<DialogFormProps, 'onSubmit'> {
  /** Does the work of the form. The signal ends when the operator leaves the form. */
  readonly run: (signal: AbortSignal) => Promise<void>
  /** The label of the button while the action runs. @default as before */
  readonly waiting?: string
  /** What the operator must know after a lost connection. @default nothing */
  readonly lost?: string
}

/** A form in a dialog that runs one action at a time, and shows its error. */
export function ActionForm(props: ActionFormProps) {
  const { run, action, waiting = action, lost, disabled = false, children, ...form } = props
  const call = useCall<void>()
  const runs = call.since !== undefined
  return (
    <DialogForm {...form} action={runs ? waiting : action} disabled={disabled || runs} onSubmit={() => call.start(run)}>
      {children}
      <CallError call={call} lost={lost} />
    </DialogForm>
  )
}

interface ConfirmProps {
  readonly title: string
  /** The name that the operator types to confirm. @default none: a button suffices */
  readonly name?: string
  /** The label of the button, such as `Purge`. */
  readonly action: string
  readonly run: () => Promise<void>
  readonly onClose: () => void
  /** What will happen, with counts. */
  readonly children: ComponentChildren
}

/** Asks before something is done that cannot be undone. Closes after a success, and shows the error otherwise. */
export function Confirm({ title, name, action, run, onClose, children }: ConfirmProps) {
  const [typed, setTyped] = useState('')
  const confirmAndClose = async (): Promise<void> => {
    await run()
    onClose()
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <ActionForm
        action={action}
        kind="danger"
        disabled={name !== undefined && typed !== name}
        onLeave={onClose}
        run={confirmAndClose}
      >
        <div class="text">{children}</div>
        {name !== undefined && (
          <TextField
            label={<>Type {<code class="name">{name}</code>} to confirm</>}
            value={typed}
            onChange={setTyped}
          />
        )}
      </ActionForm>
    </Dialog>
  )
}
