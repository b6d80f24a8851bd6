import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { commandLine, number, text } from '@signalbox/testkit/command-line'
import type { ExportedSpan } from '@signalbox/testkit/otlp-receiver'
import { decodeSpans } from '@signalbox/testkit/otlp-receiver'

import { drawTrace } from './waterfall.ts'

const { positionals, values } = commandLine(
  {
    usage: 'npm run traces -- FOLDER [options]',
    about: 'Draws the traces in a folder of export requests, which tests keep with OTLP_FOLDER=FOLDER.',
  },
  {
    out: text('FOLDER', 'for the pictures', 'traces'),
    services: number('N', 'only traces with spans of at least N services', 2),
  },
)
const [folder] = positionals
if (folder === undefined) throw new Error('FOLDER is missing; --help describes it')
mkdirSync(values.out, { recursive: true })

const traces = new Map<string, ExportedSpan[]>()
for (const file of readdirSync(folder)) {
  const type = file.endsWith('.json') ? 'application/json' : 'application/x-protobuf'
  for (const span of decodeSpans(type, readFileSync(join(folder, file)))) {
    traces.set(span.traceId, [...(traces.get(span.traceId) ?? []), span])
  }
}
for (const [traceId, spans] of traces) {
  const services = new Set(spans.map(({ service }) => service))
  if (services.size < values.services) continue
  const file = join(values.out, `${traceId}.svg`)
  writeFileSync(file, drawTrace(spans))
  process.stdout.write(`${file}: ${spans.length} spans of ${[...services].toSorted().join(', ')}\n`)
}
