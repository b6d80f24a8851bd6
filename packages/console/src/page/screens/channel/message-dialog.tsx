import { useState } from 'preact/hooks'

import { act } from '../../api/client.ts'
import type { GetData } from '../../api/client.ts'
import { useRoute } from '../../api/use-data.ts'
import { BodyView } from '../../components/body-view.tsx'
import { ActionForm } from '../../components/dialog-form.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { TextArea, TextField } from '../../components/fields.tsx'
import { Facts, notify, Reading } from '../../components/page.tsx'
import { TagsField, tagsOf, tagsText, TagsView } from '../../components/tags.tsx'
import { Ago, count, Time, UserCode, UserText } from '../../components/values.tsx'
import { href } from '../../router/location.ts'
import { useMay } from '../../session/operator.ts'

interface MessageDialogProps {
  readonly type: 'queues' | 'events_store'
  readonly channel: string
  readonly sequence: number
  readonly onClose: () => void
  readonly onSent: () => void
}

/** One message as a whole, with the form that sends it again. */
export function MessageDialog({ type, channel, sequence, onClose, onSent }: MessageDialogProps) {
  const [editing, setEditing] = useState(false)
  const mayWrite = useMay('ReadWrite')
  const { data, error, loading } = useRoute('/api/message', { type, channel, sequence })
  const message = data?.message
  return (
    <Dialog title={`Message ${count(sequence)}`} wide onClose={onClose}>
      <Reading of={{ error, loading }} />
      {message && !editing && <MessageFacts message={message} />}
      {message && !editing && mayWrite && (
        <div class="buttons">
          <button type="button" class="primary" onClick={() => setEditing(true)}>
            Edit and resend
          </button>
        </div>
      )}
      {message && editing && (
        <Resend
          type={type}
          channel={channel}
          message={message}
          onCancel={() => setEditing(false)}
          onSent={() => {
            onSent()
            onClose()
          }}
        />
      )}
    </Dialog>
  )
}

function MessageFacts({ message }: { readonly message: ShownMessage }) {
  const { id, timestamp, receive_count: receives, max_receive_count: most = 0 } = message
  const { dead_letter_queue: deadLetters = '', expires_at: expiry = null, key, metadata } = message
  return (
    <div class="stack">
      <Facts
        of={{
          Id: (
            <>
              <UserCode>{id}</UserCode> <a href={href(['trace'], { id })}>Trace</a>
            </>
          ),
          Sender: <UserText>{message.client_id}</UserText>,
          Accepted: (
            <>
              <Time value={timestamp} /> (<Ago value={timestamp} />)
            </>
          ),
          Receives: receives !== undefined && `${count(receives)}${most > 0 ? ` of ${count(most)}` : ''}`,
          'Dead-letter queue': deadLetters !== '' && <UserText>{deadLetters}</UserText>,
          Expires: expiry !== null && <Time value={expiry} />,
          Key: key !== undefined && <UserText>{key}</UserText>,
          Metadata: metadata !== '' && <UserText max={4_000}>{metadata}</UserText>,
          Tags: <TagsView tags={message.tags} />,
        }}
      />
      <BodyView body={message.body} encoding={message.body_encoding} size={message.body_size} />
    </div>
  )
}

interface ResendProps {
  readonly type: 'queues' | 'events_store'
  readonly channel: string
  readonly message: ShownMessage
  readonly onCancel: () => void
  readonly onSent: () => void
}

/** Longer bodies are not edited in the page; they can be resent as they are. */
const MAX_EDITED = 1_000_000

function Resend({ type, channel, message, onCancel, onSent }: ResendProps) {
  const editable = message.body_encoding === undefined && message.body.length <= MAX_EDITED
  const [to, setTo] = useState(channel)
  const [body, setBody] = useState(message.body)
  const [tags, setTags] = useState(() => tagsText(message.tags))
  const resend = async (): Promise<void> => {
    const { sequence } = await act('resend_message', {
      type,
      channel,
      sequence: message.sequence,
      to,
      body: editable && body !== message.body ? body : undefined,
      tags: tags === tagsText(message.tags) ? undefined : tagsOf(tags),
    })
    notify(`Sent to ${to} as message ${count(sequence)}. The original stays.`)
    onSent()
  }
  return (
    <ActionForm action="Resend" onLeave={onCancel} run={resend}>
      <TextField label={type === 'queues' ? 'To queue' : 'To events store'} required value={to} onChange={setTo} />
      {editable ? (
        <TextArea label="Body" rows={10} value={body} onChange={setBody} />
      ) : (
        <p class="muted">The body is binary or longer than 1 MB. It is sent as it is.</p>
      )}
      <TagsField value={tags} onChange={setTags} />
    </ActionForm>
  )
}

/** A message of a queue or an events store, as lists show it. */
export type ShownMessage = GetData<'/api/messages'>['items'][number]
