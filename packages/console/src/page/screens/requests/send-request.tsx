import { useState } from 'preact/hooks'

import { act } from '../../api/client.ts'
import { Badge, span } from '../../components/values.tsx'
import { BodyView } from '../../components/body-view.tsx'
import { CallState, useCall } from '../../components/call.tsx'
import { DialogForm } from '../../components/dialog-form.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Select } from '../../components/controls.tsx'
import { Field, NumberField, TextArea, TextField } from '../../components/fields.tsx'
import { TagsField, tagsOf, TagsView } from '../../components/tags.tsx'

type RequestType = 'commands' | 'queries'

const TYPES: readonly (readonly [RequestType, string])[] = [
  ['queries', 'Query: returns a reply'],
  ['commands', 'Command: is executed'],
]

interface SendRequestProps {
  readonly channel: string
  readonly onClose: () => void
  readonly onEnded: () => void
}

interface Reply {
  readonly milliseconds: number
  /** Absent for a command: its responder sends no body. */
  readonly query?: {
    readonly body: string
    readonly body_encoding?: 'base64'
    readonly metadata: string
    readonly tags: Readonly<Record<string, string>>
  }
}

/** The form that sends a command or a query, and shows the answer. */
export function SendRequest({ channel: present, onClose, onEnded }: SendRequestProps) {
  const [type, setType] = useState<RequestType>('queries')
  const [channel, setChannel] = useState(present)
  const [body, setBody] = useState('')
  const [seconds, setSeconds] = useState('10')
  const [tags, setTags] = useState('')
  const call = useCall<Reply>()
  const submit = (): void => {
    call.start(async (signal) => {
      const startedAt = performance.now()
      const request = { channel, body, tags: tagsOf(tags), timeout_seconds: Number(seconds) }
      try {
        const query =
          type === 'queries'
            ? await act('send_query', request, signal)
            : void (await act('send_command', request, signal))
        return { milliseconds: performance.now() - startedAt, ...(query === undefined ? {} : { query }) }
      } finally {
        onEnded()
      }
    })
  }
  return (
    <Dialog title="Send request" wide onClose={onClose}>
      <DialogForm action="Send" leave="Close" disabled={call.since !== undefined} onLeave={onClose} onSubmit={submit}>
        <div class="columns">
          <Field label="Type">
            <Select value={type} options={TYPES} onChange={setType} />
          </Field>
          <TextField label="Channel" required value={channel} onChange={setChannel} />
          <NumberField label="Time-out in seconds" required min={1} max={170} value={seconds} onChange={setSeconds} />
        </div>
        <TextArea label="Body" rows={5} short required value={body} onChange={setBody} />
        <TagsField value={tags} onChange={setTags} />
      </DialogForm>
      <CallState call={call} />
      {call.result && <Answer reply={call.result} />}
    </Dialog>
  )
}

function Answer({ reply: { milliseconds, query } }: { readonly reply: Reply }) {
  return (
    <div class="stack" role="region" aria-label="Answer" aria-live="polite">
      <p>
        <Badge kind="good">{query === undefined ? 'The command was executed' : 'Reply'}</Badge>{' '}
        <span class="muted">after {span(milliseconds)}</span>
      </p>
      {query && (
        <>
          <BodyView body={query.body} encoding={query.body_encoding} />
          <TagsView tags={query.tags} />
        </>
      )}
    </div>
  )
}
