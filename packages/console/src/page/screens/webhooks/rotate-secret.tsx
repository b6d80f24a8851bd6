import { useState } from 'preact/hooks'

import { act } from '../../api/client.ts'
import { ActionForm } from '../../components/dialog-form.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Field } from '../../components/fields.tsx'
import { CopyButton } from '../../components/save-and-copy.tsx'
import { Time } from '../../components/values.tsx'

/** The time for which the server also signs with the secret before, in ms. */
const BOTH_VALID_MS = 86_400_000

/** Offers a new secret for the signatures of a subscription. */
export function RotateSecret({ id }: { readonly id: string }) {
  const [open, setOpen] = useState(false)
  return (
    <div class="buttons start">
      <button type="button" onClick={() => setOpen(true)}>
        Rotate secret
      </button>
      {open && <RotateDialog id={id} onClose={() => setOpen(false)} />}
    </div>
  )
}

interface RotateDialogProps {
  readonly id: string
  readonly onClose: () => void
}

/** Asks before the secret is replaced, and shows the new one: only this answer of the server has it. */
function RotateDialog({ id, onClose }: RotateDialogProps) {
  const [rotated, setRotated] = useState<Rotated>()
  return (
    <Dialog title="Rotate secret" wide onClose={onClose}>
      {rotated === undefined ? (
        <ActionForm
          action="Rotate"
          kind="danger"
          lost="The connection was lost. The server may have replaced the secret: rotate it again."
          onLeave={onClose}
          run={async (signal) => setRotated(await rotate(id, signal))}
        >
          <p>
            This replaces the secret of this subscription by a generated one. The page shows it once. For a day,
            deliveries have signatures of both secrets: give the new one to the endpoint in that time.
          </p>
          <p>After another rotation within the last day, the secret before that one loses its validity at once.</p>
        </ActionForm>
      ) : (
        <NewSecret rotated={rotated} onClose={onClose} />
      )}
    </Dialog>
  )
}

interface Rotated {
  readonly secret: string
  /** The end of the old secret, ISO 8601. */
  readonly oldUntil: string
}

async function rotate(id: string, signal: AbortSignal): Promise<Rotated> {
  const { secret } = await act('rotate_webhook_secret', { id }, signal)
  return { secret, oldUntil: new Date(Date.now() + BOTH_VALID_MS).toISOString() }
}

function NewSecret({
  rotated: { secret, oldUntil },
  onClose,
}: {
  readonly rotated: Rotated
  readonly onClose: () => void
}) {
  return (
    <div class="stack">
      <Field label="New secret" hint="The server does not show it again.">
        <input
          readOnly
          spellcheck={false}
          autocomplete="off"
          value={secret}
          ref={(field) => field?.select()}
          onFocus={(event) => event.currentTarget.select()}
        />
      </Field>
      <p role="status">
        The old secret is valid for a day, until <Time value={oldUntil} />.
      </p>
      <div class="buttons">
        <CopyButton text={secret} />
        <button type="button" class="primary" onClick={onClose}>
          Close
        </button>
      </div>
    </div>
  )
}
