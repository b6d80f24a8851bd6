import * as fc from 'fast-check'
import type { Arbitrary } from 'fast-check'

import { CE_ROUTES } from '../../../../../packages/connector-cloudevents/src/routes/index.ts'
import type { CeRoute } from '../../../../../packages/connector-cloudevents/src/routes/route.ts'
import { JSON_UNITS, jsonText, listText } from '../json.ts'
import { channelName, cloudEventJson } from '../messages.ts'
import { almost, phrase, weighted, word } from '../pieces.ts'
import type { Shape } from './step.ts'
import { headerValue, post, step } from './step.ts'

/** The values of a parameter, by its name. */
const PARAMETERS: Readonly<Record<string, Arbitrary<string>>> = {
  channel: channelName,
  group: fc.constantFrom('g', 'h'),
  client_id: fc.constantFrom('c', 'd'),
  dead_letter_queue: channelName,
  request_id: fc.constantFrom('{{request}}', '{{request}}', 'none'),
  receipt: fc.constantFrom('{{receipt}}', '{{receipt}}', 'none', '1-00000000-0000-4000-8000-000000000000'),
  is_error: fc.constantFrom('true', 'false'),
  events_store_type: fc.constantFrom('1', '2', '3', '4', '5', '6'),
  events_store_value: fc.constantFrom('1', '2026-01-31T09:30:00Z', '60'),
}

const parameterValue = fc.oneof(fc.constantFrom('1', '2', '10', '0', '-1', 'true', '9007199254740993'), word)

interface Query {
  readonly route: string
  readonly method: string
  readonly query: string
}

/** A route with its own query parameters, sometimes with an unknown one. */
function queryOf(routes: readonly CeRoute[]): Arbitrary<Query> {
  return fc.constantFrom(...routes).chain(({ name, method, input: query }) => {
    const required: readonly string[] = query.required ?? []
    const pairs = Object.keys(query.properties).map((parameter) => {
      const value = weighted([6, PARAMETERS[parameter] ?? fc.constantFrom('1', '2')], [1, parameterValue])
      const rate = required.includes(parameter) || parameter === 'channel' ? 9 : 1
      return fc.tuple(fc.constant(parameter), fc.option(value, { nil: undefined, freq: rate }))
    })
    const stranger = fc.option(fc.tuple(word, word), { nil: undefined, freq: 1 })
    return fc.tuple(fc.tuple(...pairs), fc.option(stranger, { nil: undefined, freq: 1 })).map(([given, strange]) => ({
      route: name,
      method,
      query: [...given, ...(strange === undefined ? [] : [strange])]
        .flatMap(([parameter, value]) =>
          value === undefined
            ? []
            : [`${parameter}=${value.startsWith('{{') ? value : encodeURIComponent(value.toWellFormed())}`],
        )
        .join('&'),
    }))
  })
}

const sends = queryOf(CE_ROUTES.filter(({ body }) => body !== 'ignored'))
const batches = queryOf(CE_ROUTES.filter(({ body }) => body === 'events'))
const streams = queryOf(CE_ROUTES.filter(({ name }) => name.startsWith('subscribe/')))
const others = queryOf(CE_ROUTES.filter(({ name, body }) => body === 'ignored' && !name.startsWith('subscribe/')))

const BINARY = [
  ['ce-specversion', '1.0'],
  ['ce-id', '1'],
  ['ce-source', '/a'],
  ['ce-type', 't'],
] as const

const cloudEvents = weighted(
  [
    4,
    fc
      .tuple(sends, almost(cloudEventJson, ...JSON_UNITS, '"a1":1,'))
      .map(([{ route, query }, body]) =>
        post(`/ce/${route}?${query}`, body, [['Content-Type', 'application/cloudevents+json']]),
      ),
  ],
  [
    2,
    fc
      .tuple(
        batches,
        almost(
          listText(cloudEventJson),
          ...JSON_UNITS,
          '{"specversion":"1.0","id":"1","source":"/a","type":"t","subject":"fuzz.a"},',
        ),
      )
      .map(([{ route, query }, body]) =>
        post(`/ce/${route}?${query}`, body, [['Content-Type', 'application/cloudevents-batch+json']]),
      ),
  ],
  [
    2,
    fc
      .tuple(
        sends,
        almost(fc.oneof(jsonText, phrase), ...JSON_UNITS),
        fc.array(fc.tuple(fc.constantFrom('ce-subject', 'ce-time', 'ce-ext', 'ce-id'), headerValue), {
          maxLength: 2,
          size: 'small',
        }),
        fc.constantFrom('application/json', 'text/plain', 'application/octet-stream', ''),
      )
      .map(([{ route, query }, body, more, type]) =>
        post(`/ce/${route}?${query}`, body, [...BINARY, ['Content-Type', type], ...more]),
      ),
  ],
  [3, others.map(({ route, method, query }): Shape => ({ method, path: `/ce/${route}?${query}` }))],
  [
    2,
    fc
      .tuple(streams, fc.constantFrom(20, 100), fc.constantFrom('plain', 'stalled'))
      .map(([{ route, query }, patienceMs, manner]): Shape => ({
        method: 'GET',
        path: `/ce/${route}?${query}`,
        headers: [['Accept', 'text/event-stream']],
        patienceMs,
        manner,
      })),
  ],
)

export const cloudEventStep = step(cloudEvents)
