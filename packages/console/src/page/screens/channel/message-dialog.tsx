import { useState } from 'preact/hooks'

import { act, get } from '../../api/client.ts'
import type { ApiError, GetData } from '../../api/client.ts'
import { toApiError, useData } from '../../api/use-data.ts'
import { BodyView } from '../../components/body-view.tsx'
import { Dialog, DialogForm } from '../../components/dialog.tsx'
import { Field } from '../../components/fields.tsx'
import { ErrorOf, notify, Reading } from '../../components/page.tsx'
import { TagsField, tagsOf, tagsText, TagsView } from '../../components/tags.tsx'
import { Ago, count, Time, UserText } from '../../components/values.tsx'
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
  const { data, error, loading } = useData(`message ${type} ${channel} ${sequence}`, (signal) =>
    get('/api/message', { type, channel, sequence }, signal),
  )
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
  const { id, client_id, timestamp, receive_count, max_receive_count, dead_letter_queue, expires_at, key, metadata } =
    message
  return (
    <div class="stack">
      <dl class="facts">
        <dt>Id</dt>
        <dd>
          <code>
            <UserText>{id}</UserText>
          </code>{' '}
          <a href={href(['trace'], { id })}>Trace</a>
        </dd>
        <dt>Sender</dt>
        <dd>
          <UserText>{client_id}</UserText>
        </dd>
        <dt>Accepted</dt>
        <dd>
          <Time value={timestamp} /> (<Ago value={timestamp} />)
        </dd>
        {receive_count !== undefined && (
          <>
            <dt>Receives</dt>
            <dd>
              {count(receive_count)}
              {max_receive_count !== undefined && max_receive_count > 0 && ` of ${count(max_receive_count)}`}
            </dd>
          </>
        )}
        {dead_letter_queue !== undefined && dead_letter_queue !== '' && (
          <>
            <dt>Dead-letter queue</dt>
            <dd>
              <UserText>{dead_letter_queue}</UserText>
            </dd>
          </>
        )}
        {expires_at !== undefined && expires_at !== null && (
          <>
            <dt>Expires</dt>
            <dd>
              <Time value={expires_at} />
            </dd>
          </>
        )}
        {key !== undefined && (
          <>
            <dt>Key</dt>
            <dd>
              <UserText>{key}</UserText>
            </dd>
          </>
        )}
        {metadata !== '' && (
          <>
            <dt>Metadata</dt>
            <dd>
              <UserText max={4_000}>{metadata}</UserText>
            </dd>
          </>
        )}
        <dt>Tags</dt>
        <dd>
          <TagsView tags={message.tags} />
        </dd>
      </dl>
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
  const [error, setError] = useState<ApiError>()
  const [running, setRunning] = useState(false)
  const submit = async (): Promise<void> => {
    setRunning(true)
    try {
      const { sequence } = await act('resend_message', {
        type,
        channel,
        sequence: message.sequence,
        to,
        ...(editable && body !== message.body ? { body } : {}),
        ...(tags === tagsText(message.tags) ? {} : { tags: tagsOf(tags) }),
      })
      notify(`Sent to ${to} as message ${count(sequence)}. The original stays.`)
      onSent()
    } catch (cause) {
      setError(toApiError(cause))
      setRunning(false)
    }
  }
  return (
    <DialogForm action="Resend" disabled={running} onLeave={onCancel} onSubmit={() => void submit()}>
      <Field label={type === 'queues' ? 'To queue' : 'To events store'}>
        <input value={to} required spellcheck={false} onInput={(event) => setTo(event.currentTarget.value)} />
      </Field>
      {editable ? (
        <Field label="Body">
          <textarea value={body} rows={10} spellcheck={false} onInput={(event) => setBody(event.currentTarget.value)} />
        </Field>
      ) : (
        <p class="muted">The body is binary or longer than 1 MB. It is sent as it is.</p>
      )}
      <TagsField value={tags} onChange={setTags} />
      <ErrorOf error={error} />
    </DialogForm>
  )
}

/** A message of a queue or an events store, as lists show it. */
export type ShownMessage = GetData<'/api/messages'>['items'][number]
