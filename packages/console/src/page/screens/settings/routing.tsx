import { useState } from 'preact/hooks'

import type { GetData } from '../../api/client.ts'
import { useRoute } from '../../api/use-data.ts'
import { Segments } from '../../components/controls.tsx'
import { Empty, ErrorOf, Panel } from '../../components/page.tsx'
import { Table } from '../../components/table.tsx'
import { plural, TYPE_NAMES, UserCode, UserText, visible } from '../../components/values.tsx'

/** The routing table as a picture or as a table. */
export function Routing() {
  const [view, setView] = useState<'picture' | 'table'>('picture')
  const { data, error } = useRoute('/api/routing', {}, 30_000)
  const rules = data?.rules ?? []
  return (
    <Panel
      title="Routing"
      note={
        rules.length > 0 ? `${plural(rules.length, 'rule')}; every rule that matches copies the message` : undefined
      }
      actions={
        rules.length > 0 && (
          <Segments
            label="Form of the routing table"
            value={view}
            options={[
              ['picture', 'Picture'],
              ['table', 'Table'],
            ]}
            onChange={setView}
          />
        )
      }
    >
      <ErrorOf error={error} />
      {data && rules.length === 0 && <Empty>There is no routing table. ROUTING_FILE names its file.</Empty>}
      {rules.length > 0 && view === 'picture' && <RoutingDrawing rules={rules} />}
      {rules.length > 0 && view === 'table' && (
        <Table
          label="Routing table"
          rows={rules}
          keyOf={({ index }) => String(index)}
          columns={[
            { title: 'Rule', width: '4rem', numeric: true, cell: ({ index }) => index },
            {
              title: 'Condition',
              width: '9rem',
              wideOnly: true,
              cell: ({ key_type: type }) => (type === 'regex' ? 'Channel name' : 'CESQL'),
            },
            {
              title: 'Key',
              cell: ({ key }) => <UserCode>{key}</UserCode>,
            },
            {
              title: 'Copies go to',
              cell: ({ targets }) => (
                <UserText max={1_000}>
                  {targets.map(({ type, channel }) => `${TYPE_NAMES[type]} ${channel}`).join(', ')}
                </UserText>
              ),
            },
          ]}
        />
      )}
    </Panel>
  )
}

/** The rules that are drawn. Longer tables are in the table view as a whole. */
const MAX_RULES = 60
const MAX_TARGETS = 120

const WIDTH = 960
const BOX_HEIGHT = 40
const GAP = 12
const STEP = BOX_HEIGHT + GAP
const LEFT_WIDTH = 460
const RIGHT_WIDTH = 320
const RIGHT_X = WIDTH - RIGHT_WIDTH
/** The characters that fit into the boxes, at 7.3 px for a character. */
const LEFT_CHARACTERS = 60
const RIGHT_CHARACTERS = 40

/** Rules on the left, targets on the right, and a line for each copy. */
function RoutingDrawing({ rules }: { readonly rules: readonly RoutingRule[] }) {
  const drawn = rules.slice(0, MAX_RULES)
  const targets = targetsOf(drawn).slice(0, MAX_TARGETS)
  const rows = Math.max(drawn.length, targets.length)
  const height = rows * STEP - GAP + 2
  const topOf = (index: number, of: number): number => 1 + ((rows - of) * STEP) / 2 + index * STEP
  const links = drawn.flatMap((rule, index) =>
    rule.targets.map((target) => ({ from: index, to: targets.findIndex(({ id }) => id === idOf(target)) })),
  )
  return (
    <>
      <div class="drawing" tabIndex={0} role="region" aria-label="Picture of the routing table">
        <svg viewBox={`0 0 ${WIDTH} ${height}`} role="img" aria-label={describe(drawn)}>
          {links
            .filter(({ to }) => to >= 0)
            .map(({ from, to }, index) => (
              <Link
                key={index}
                fromY={topOf(from, drawn.length) + BOX_HEIGHT / 2}
                toY={topOf(to, targets.length) + BOX_HEIGHT / 2}
              />
            ))}
          {drawn.map(({ index, key, key_type: type }, row) => (
            <Box
              key={index}
              x={1}
              y={topOf(row, drawn.length)}
              width={LEFT_WIDTH}
              kind={type === 'regex' ? 'channels whose name matches' : 'messages for which'}
              text={key}
              characters={LEFT_CHARACTERS}
            />
          ))}
          {targets.map(({ id, type, channel }, row) => (
            <Box
              key={id}
              x={RIGHT_X - 1}
              y={topOf(row, targets.length)}
              width={RIGHT_WIDTH}
              kind={TYPE_NAMES[type]}
              text={channel}
              characters={RIGHT_CHARACTERS}
            />
          ))}
        </svg>
      </div>
      {drawn.length < rules.length && (
        <p class="muted">
          The picture has the first {drawn.length} of {rules.length} rules. The table has all.
        </p>
      )}
    </>
  )
}

type Target = RoutingRule['targets'][number]

function idOf({ type, channel }: Target): string {
  return `${type}:${channel}`
}

/** Returns each target once, in the order of the rules. */
function targetsOf(rules: readonly RoutingRule[]): readonly (Target & { readonly id: string })[] {
  const targets = new Map(rules.flatMap((rule) => rule.targets).map((target) => [idOf(target), target]))
  return Array.from(targets, ([id, { type, channel }]) => ({ id, type, channel }))
}

/** Returns the content of the picture for readers who do not see it. */
function describe(rules: readonly RoutingRule[]): string {
  return rules
    .map(
      ({ key, targets }) =>
        `${key} to ${targets.map(({ type, channel }) => `${TYPE_NAMES[type]} ${channel}`).join(', ')}`,
    )
    .join('; ')
    .slice(0, 2_000)
}

function Link({ fromY, toY }: { readonly fromY: number; readonly toY: number }) {
  const [start, end] = [LEFT_WIDTH + 1, RIGHT_X - 8]
  const middle = (start + end) / 2
  return (
    <>
      <path d={`M${start} ${fromY}C${middle} ${fromY} ${middle} ${toY} ${end} ${toY}`} />
      <path class="arrow" d={`M${end} ${toY - 4}l7 4l-7 4z`} />
    </>
  )
}

interface BoxProps {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly kind: string
  readonly text: string
  readonly characters: number
}

function Box({ x, y, width, kind, text, characters }: BoxProps) {
  const shown = visible(text)
  return (
    <g>
      <title>{shown}</title>
      <rect x={x} y={y} width={width} height={BOX_HEIGHT} rx={6} />
      <text class="kind" x={x + 10} y={y + 15}>
        {kind}
      </text>
      <text x={x + 10} y={y + 31}>
        {shown.length > characters ? `${shown.slice(0, characters - 1)}…` : shown}
      </text>
    </g>
  )
}

type RoutingRule = GetData<'/api/routing'>['rules'][number]
