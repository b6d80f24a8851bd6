import { useState } from 'preact/hooks'

import type { ApiError } from '../../api/client.ts'
import { act } from '../../api/client.ts'
import { toApiError } from '../../api/use-data.ts'
import type { ChannelType } from '../../components/channel-link.tsx'
import { CHANNEL_TYPES, TYPE_NAMES } from '../../components/channel-link.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { DialogForm } from '../../components/dialog-form.tsx'
import { ErrorOf } from '../../components/feedback.tsx'
import { Field, Select } from '../../components/fields.tsx'
import { NameInput } from '../../components/name-input.tsx'

interface CreateChannelProps {
  readonly onClose: () => void
  /** Gets a sentence for the operator. */
  readonly onCreated: (text: string) => void
}

export function CreateChannel({ onClose, onCreated }: CreateChannelProps) {
  const [type, setType] = useState<ChannelType>('queues')
  const [channel, setChannel] = useState('')
  const [error, setError] = useState<ApiError>()
  const submit = async (): Promise<void> => {
    try {
      const { created } = await act('create_channel', { channel, type })
      onCreated(created ? `${TYPE_NAMES[type]} ${channel} created.` : `${TYPE_NAMES[type]} ${channel} existed already.`)
      onClose()
    } catch (cause) {
      setError(toApiError(cause))
    }
  }
  return (
    <Dialog title="Create channel" onClose={onClose}>
      <DialogForm action="Create" onLeave={onClose} onSubmit={() => void submit()}>
        <Field label="Type">
          <Select
            label="Type"
            value={type}
            options={CHANNEL_TYPES.map((one) => [one, TYPE_NAMES[one]])}
            onChange={setType}
          />
        </Field>
        <Field label="Name" hint="Parts are separated by dots, such as orders.eu.">
          <NameInput value={channel} onChange={setChannel} />
        </Field>
        <ErrorOf error={error} />
      </DialogForm>
    </Dialog>
  )
}
