import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'

import { toApiError } from '../api/use-data.ts'
import type { ApiError } from '../api/client.ts'
import { Dialog } from './dialog.tsx'
import { DialogForm } from './dialog-form.tsx'
import { ErrorOf } from './feedback.tsx'
import { Field } from './fields.tsx'

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
  const [running, setRunning] = useState(false)
  const [error, setError] = useState<ApiError>()
  const confirmed = name === undefined || typed === name
  const submit = async (): Promise<void> => {
    setRunning(true)
    try {
      await run()
      onClose()
    } catch (cause) {
      setError(toApiError(cause))
      setRunning(false)
    }
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <DialogForm
        action={action}
        kind="danger"
        disabled={!confirmed || running}
        onLeave={onClose}
        onSubmit={() => void submit()}
      >
        <div class="text">{children}</div>
        {name !== undefined && (
          <Field label={<>Type {<code class="name">{name}</code>} to confirm</>}>
            <input
              value={typed}
              autocomplete="off"
              spellcheck={false}
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          </Field>
        )}
        <ErrorOf error={error} />
      </DialogForm>
    </Dialog>
  )
}
