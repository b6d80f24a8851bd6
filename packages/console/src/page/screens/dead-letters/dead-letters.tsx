import { useData } from '../../api/use-data.ts'
import { Empty, ErrorOf, Loading } from '../../components/feedback.tsx'
import { Search } from '../../components/fields.tsx'
import { count } from '../../components/format.ts'
import { Page } from '../../components/page.tsx'
import { Table } from '../../components/table.tsx'
import { UserText } from '../../components/user-text.tsx'
import { href, setQuery } from '../../router/location.ts'
import type { ScreenProps } from '../screens.ts'
import { findDeadLetterQueues } from './find-queues.ts'
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
          value={channel}
          onChange={(value) => setQuery({ channel: value, source: undefined, reason: undefined })}
        />
      }
    >
      {channel === '' ? <QueueList /> : <Groups key={channel} channel={channel} place={place} />}
      <Redrives />
    </Page>
  )
}

function QueueList() {
  const { data, error, loading } = useData('dead-letter queues', findDeadLetterQueues, 30_000)
  return (
    <>
      <ErrorOf error={error} />
      {loading && <Loading />}
      {data?.length === 0 && (
        <Empty>
          No queue holds dead letters. Of many queues only the 60 deepest are searched: enter the name of another one.
        </Empty>
      )}
      {data !== undefined && data.length > 0 && (
        <Table
          label="Dead-letter queues"
          rows={data}
          keyOf={({ name }) => name}
          onOpen={({ name }) => setQuery({ channel: name })}
          columns={[
            {
              id: 'name',
              title: 'Dead-letter queue',
              cell: ({ name }) => (
                <a href={href(['dead-letters'], { channel: name })}>
                  <UserText>{name}</UserText>
                </a>
              ),
            },
            {
              id: 'waiting',
              title: 'Dead letters',
              numeric: true,
              width: '9rem',
              cell: ({ waiting }) => count(waiting),
            },
          ]}
        />
      )}
    </>
  )
}
