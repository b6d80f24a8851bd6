import { useState } from 'preact/hooks'

import type { GetData } from '../../api/client.ts'
import { act } from '../../api/client.ts'
import { useRoute } from '../../api/use-data.ts'
import { BodyPreview, BodyView } from '../../components/body-view.tsx'
import { ActionForm } from '../../components/dialog-form.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { attempt, Facts, notify, Panel, Reading } from '../../components/page.tsx'
import { TextArea } from '../../components/fields.tsx'
import { count, UserCode, UserText } from '../../components/values.tsx'
import { Table } from '../../components/table.tsx'
import { TagsView } from '../../components/tags.tsx'
import { useMay } from '../../session/operator.ts'

type Letter = GetData<'/api/messages'>['items'][number]

interface LettersProps {
  readonly channel: string
  readonly source: string
  readonly reason: string
  readonly onChanged: () => void
}

/** The first dead letters of a group. Each can be redriven, as it is or edited. */
export function Letters({ channel, source, reason, onChanged }: LettersProps) {
  const mayWrite = useMay('ReadWrite')
  const [open, setOpen] = useState<Letter>()
  const { data, error, loading, refresh } = useRoute(
    '/api/messages',
    { type: 'queues', channel, limit: 1_000, max_body_size: 256 },
    5_000,
  )
  const letters = data?.items.filter(({ tags }) => tags['dlq_source'] === source && tags['dlq_reason'] === reason)
  const changed = (): void => {
    setOpen(undefined)
    refresh()
    onChanged()
  }
  const redrive = async (letter: Letter): Promise<void> => {
    const { redriven, left } = await act('redrive_dead_letters', { channel, ids: [letter.id] })
    notify(
      redriven === 1
        ? `Message ${count(letter.sequence)} was sent back to ${source}.`
        : `The message stays: ${left[0]?.reason ?? 'it is gone'}`,
    )
    changed()
  }
  return (
    <Panel
      title={
        <>
          From <UserText>{source}</UserText>, <UserText>{reason}</UserText>
        </>
      }
      note={letters && `the first ${count(letters.length)}`}
    >
      <Reading of={{ error, loading }} />
      {letters && (
        <Table
          label="Dead letters"
          empty="No letter of this group is among the first 1,000 messages."
          rows={letters}
          keyOf={({ sequence }) => String(sequence)}
          onOpen={setOpen}
          columns={[
            { title: 'Sequence', width: '6rem', count: 'sequence' },
            { title: 'Age', width: '8rem', ago: 'timestamp' },
            { title: 'Sender', width: '9rem', wideOnly: true, text: 'client_id' },
            { title: 'Body', cell: (row) => <BodyPreview of={row} /> },
            {
              title: 'Action',
              numeric: true,
              width: '6.5rem',
              cell: (letter) =>
                mayWrite && (
                  <button type="button" class="quiet" onClick={() => attempt(() => redrive(letter))}>
                    Redrive
                  </button>
                ),
            },
          ]}
        />
      )}
      {open !== undefined && (
        <LetterDialog
          channel={channel}
          source={source}
          letter={open}
          onClose={() => setOpen(undefined)}
          onRedriven={changed}
        />
      )}
    </Panel>
  )
}

interface LetterDialogProps {
  readonly channel: string
  readonly source: string
  readonly letter: Letter
  readonly onClose: () => void
  readonly onRedriven: () => void
}

function LetterDialog({ channel, source, letter, onClose, onRedriven }: LetterDialogProps) {
  const mayWrite = useMay('ReadWrite')
  const [body, setBody] = useState<string>()
  const { data, error, loading } = useRoute('/api/message', { type: 'queues', channel, sequence: letter.sequence })
  const message = data?.message
  const redrive = async (): Promise<void> => {
    await act('redrive_edited_message', { channel, id: letter.id, body })
    notify(`The edited message was sent to ${source}.`)
    onRedriven()
  }
  return (
    <Dialog title={`Dead letter ${count(letter.sequence)}`} wide onClose={onClose}>
      <Reading of={{ error, loading }} />
      {message !== undefined && body === undefined && (
        <div class="stack">
          <Facts of={{ Id: <UserCode>{message.id}</UserCode>, Tags: <TagsView tags={message.tags} /> }} />
          <BodyView body={message.body} encoding={message.body_encoding} size={message.body_size} />
          {message.body_encoding === undefined && mayWrite && (
            <div class="buttons">
              <button type="button" class="primary" onClick={() => setBody(message.body)}>
                Edit and redrive
              </button>
            </div>
          )}
        </div>
      )}
      {body !== undefined && (
        <ActionForm action="Redrive" onLeave={() => setBody(undefined)} run={redrive}>
          <TextArea
            label="Body"
            hint={`The message goes to ${source} under your name, and leaves this queue.`}
            rows={12}
            value={body}
            onChange={setBody}
          />
        </ActionForm>
      )}
    </Dialog>
  )
}
