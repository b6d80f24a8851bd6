import { useEffect, useState } from 'preact/hooks'

import type { GetData, GetQuery } from '../../api/client.ts'
import { get } from '../../api/client.ts'
import { useData } from '../../api/use-data.ts'
import { ChannelLink, isChannelType, TYPE_NAMES } from '../../components/channel-link.tsx'
import { Empty, ErrorOf, Loading } from '../../components/feedback.tsx'
import { Field } from '../../components/fields.tsx'
import { Page, Panel } from '../../components/page.tsx'
import { Time } from '../../components/time.tsx'
import { Timeline } from '../../components/timeline.tsx'
import { UserText } from '../../components/user-text.tsx'
import { setQuery } from '../../router/location.ts'
import type { ScreenProps } from '../screens.ts'
import { AuditOfMessage } from './audit-of-message.tsx'
import { Places } from './places.tsx'
import { StepText } from './step-text.tsx'

type TraceData = GetData<'/api/trace'>

/** What the server knows about one message, by its id or by the id of its trace. */
export function Trace({ place: { query } }: ScreenProps) {
  return (
    <Page title="Trace" note="The way of one message">
      <TraceForm key={JSON.stringify(query)} query={query} />
      <Answer query={query} />
    </Page>
  )
}

/** The types of channels that store messages. */
const STORED = ['queues', 'events_store'] as const

type Query = Readonly<Record<string, string>>

const TRACE_ID = /^[\da-f]{32}$/
/** A traceparent, as it is in tags. */
const TRACEPARENT = /^[\da-f]{2}-([\da-f]{32})-[\da-f]{16}-[\da-f]{2}$/

/** Returns the parameters of the route; undefined if the place names no message. */
function questionOf({ id = '', type, channel = '' }: Query): GetQuery<'/api/trace'> | undefined {
  if (id === '') return undefined
  const trace = TRACEPARENT.exec(id)?.[1] ?? (TRACE_ID.test(id) ? id : undefined)
  const stored = STORED.find((one) => one === type)
  const where = channel === '' || stored === undefined ? {} : { type: stored, channel }
  return trace === undefined ? { id, ...where } : { trace_id: trace, ...where }
}

function TraceForm({ query }: { readonly query: Query }) {
  const [id, setId] = useState(query['id'] ?? '')
  const [channel, setChannel] = useState(query['channel'] ?? '')
  const [type, setType] = useState(query['type'] === 'events_store' ? 'events_store' : 'queues')
  return (
    <form
      class="tester trace-form"
      onSubmit={(event) => {
        event.preventDefault()
        setQuery({ id: id.trim(), channel: channel.trim(), type: channel.trim() === '' ? undefined : type })
      }}
    >
      <Field label="Id of the message, or trace id">
        <input
          type="search"
          required
          maxLength={256}
          autocomplete="off"
          spellcheck={false}
          value={id}
          onInput={(event) => setId(event.currentTarget.value)}
        />
      </Field>
      <Field label="Also search in">
        <select value={type} onChange={(event) => setType(event.currentTarget.value)}>
          <option value="queues">{TYPE_NAMES.queues}</option>
          <option value="events_store">{TYPE_NAMES.events_store}</option>
        </select>
      </Field>
      <Field label="Channel (optional)">
        <input
          autocomplete="off"
          spellcheck={false}
          value={channel}
          onInput={(event) => setChannel(event.currentTarget.value)}
        />
      </Field>
      <button type="submit" class="primary">
        Trace
      </button>
    </form>
  )
}

function Answer({ query }: { readonly query: Query }) {
  const question = questionOf(query)
  if (question === undefined) {
    return (
      <Empty>
        Enter the id of a message. Its sender got the id in the answer, and lists of messages show it. A trace id has 32
        hexadecimal digits and is in the tag traceparent.
      </Empty>
    )
  }
  return <Found key={JSON.stringify(question)} question={question} />
}

function Found({ question }: { readonly question: GetQuery<'/api/trace'> }) {
  const { data, error, loading } = useData(
    `trace ${JSON.stringify(question)}`,
    (signal) => get('/api/trace', question, signal),
    5_000,
  )
  const [announced, setAnnounced] = useState('')
  useEffect(() => {
    if (data) setAnnounced(summaryOf(data))
  }, [data])
  return (
    <>
      <p role="status" class="hidden-text">
        {announced}
      </p>
      <ErrorOf error={error} />
      {loading && <Loading />}
      {data && <Steps data={data} />}
      {data && data.places.length > 0 && <Places places={data.places} />}
      {data && data.audit.length > 0 && <AuditOfMessage entries={data.audit} />}
    </>
  )
}

function summaryOf({ steps, places }: TraceData): string {
  if (steps.length === 0 && places.length === 0) return 'Nothing is known about the message.'
  return `${steps.length} steps; stored in ${places.length} channels.`
}

function Steps({ data }: { readonly data: TraceData }) {
  const { node, steps, remembered_since: since } = data
  return (
    <Panel
      title="Steps"
      note={
        <>
          Seen by {node}
          {since !== null && (
            <>
              , which has forgotten steps before <Time value={since} />
            </>
          )}
        </>
      }
    >
      {steps.length === 0 ? (
        <Empty>
          This node has seen no step of such a message. It may have passed another node, or too long ago. The audit log
          and the channels are searched too.
        </Empty>
      ) : (
        <Timeline
          label="Steps"
          events={steps.map((step) => ({
            time: step.time,
            title: <StepText step={step} />,
            detail: (
              <>
                {isChannelType(step.type) && <ChannelLink type={step.type} name={step.channel} />}{' '}
                <code>
                  <UserText>{step.id}</UserText>
                </code>
              </>
            ),
          }))}
        />
      )}
    </Panel>
  )
}
