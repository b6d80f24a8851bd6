import { useState } from 'preact/hooks'

import { act } from '../../api/client.ts'
import { BodyView } from '../../components/body-view.tsx'
import type { ChannelType } from '../../components/values.tsx'
import { ActionForm } from '../../components/dialog-form.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { notify } from '../../components/page.tsx'
import { NumberField, TextArea } from '../../components/fields.tsx'
import { count } from '../../components/values.tsx'
import { TagsField, tagsOf } from '../../components/tags.tsx'

interface SendProps {
  readonly type: ChannelType
  readonly channel: string
  readonly onClose: () => void
  readonly onSent: () => void
}

interface Reply {
  readonly body: string
}

const TITLES: Readonly<Record<ChannelType, string>> = {
  queues: 'Send message',
  events: 'Publish event',
  events_store: 'Publish event',
  commands: 'Send command',
  queries: 'Send query',
}

/** The form that sends a message of any channel type. It shows the reply to a request. */
export function Send({ type, channel, onClose, onSent }: SendProps) {
  const [body, setBody] = useState('')
  const [tags, setTags] = useState('')
  const [delay, setDelay] = useState('0')
  const [reply, setReply] = useState<Reply>()
  const run = async (): Promise<void> => {
    setReply(undefined)
    const answer = await send(type, { channel, body, tags: tagsOf(tags) }, Number(delay))
    onSent()
    if (typeof answer === 'string') {
      notify(answer)
      onClose()
    } else setReply(answer)
  }
  return (
    <Dialog title={TITLES[type]} wide onClose={onClose}>
      <ActionForm
        action="Send"
        waiting="Waiting …"
        leave={reply === undefined ? 'Cancel' : 'Close'}
        onLeave={onClose}
        run={run}
      >
        <TextArea label="Body" rows={8} value={body} onChange={setBody} />
        <TagsField value={tags} onChange={setTags} />
        {type === 'queues' && <NumberField label="Delay in seconds" min={0} value={delay} onChange={setDelay} />}
        {reply !== undefined && (
          <section aria-label="Reply">
            <h3>Reply</h3>
            <BodyView body={reply.body} />
          </section>
        )}
      </ActionForm>
    </Dialog>
  )
}

interface Message {
  readonly channel: string
  readonly body: string
  readonly tags: Readonly<Record<string, string>>
}

/** Sends the message. Returns a sentence about it, or the reply. */
async function send(type: ChannelType, message: Message, delay: number): Promise<string | Reply> {
  switch (type) {
    case 'queues': {
      const { sequence } = await act('send_queue_message', { ...message, delay_seconds: delay })
      return `Message ${count(sequence)} sent.`
    }
    case 'events':
      await act('publish_event', message)
      return 'Event published.'
    case 'events_store': {
      const { sequence } = await act('publish_event_store', message)
      return `Event ${count(sequence)} published.`
    }
    case 'commands':
      await act('send_command', message)
      return 'The command was executed.'
    default: {
      const { body } = await act('send_query', message)
      return { body }
    }
  }
}
