import { get } from '../../api/client.ts'
import { usePages } from '../../api/use-pages.ts'
import { Page, Reading } from '../../components/page.tsx'
import { Search } from '../../components/controls.tsx'
import { UserText } from '../../components/values.tsx'
import { Table } from '../../components/table.tsx'
import { href, setQuery } from '../../router/location.ts'
import type { ScreenProps } from '../screens.ts'
import { Groups } from './groups.tsx'
import { Redrives } from './redrives.tsx'

/** The queues that hold dead letters, or one of them: `#/dead-letters?channel=orders.dead`. */
export function DeadLetters({ place }: ScreenProps) {
  const { channel = '' } = place.query
  return (
    <Page
      title="Dead letters"
      actions={
        <Search
          label="Dead-letter queue"
          name="channel"
          changes={(text) => ({ channel: text, source: undefined, reason: undefined })}
        />
      }
    >
      {channel === '' ? <QueueList /> : <Groups key={channel} channel={channel} place={place} />}
      <Redrives />
    </Page>
  )
}

function QueueList() {
  const { data, error, loading } = usePages(
    'dead-letter queues',
    (cursor, signal) => get('/api/dead_letter_queues', cursor, signal),
    10_000,
  )
  return (
    <>
      <Reading of={{ error, loading }} />
      {data && (
        <Table
          label="Dead-letter queues"
          empty="No queue holds dead letters."
          rows={data}
          keyOf={(queue) => queue.channel}
          onOpen={(queue) => setQuery({ channel: queue.channel })}
          columns={[
            {
              title: 'Dead-letter queue',
              cell: (queue) => (
                <a href={href(['dead-letters'], { channel: queue.channel })}>
                  <UserText>{queue.channel}</UserText>
                </a>
              ),
            },
            {
              title: 'From',
              wideOnly: true,
              cell: ({ sources }) => <UserText>{sources.map(({ source }) => source).join(', ')}</UserText>,
            },
            { title: 'Oldest', numeric: true, width: '9rem', wideOnly: true, ago: 'oldest' },
            { title: 'Dead letters', width: '9rem', count: 'waiting' },
          ]}
        />
      )}
    </>
  )
}
