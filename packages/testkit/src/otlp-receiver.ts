import { randomUUID } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import definitions from 'otlp-definitions/build/src/generated/root.js'

import type { LoopbackServer } from './loopback.ts'
import { serveHttp } from './loopback.ts'

export type SpanKindName = 'internal' | 'server' | 'client' | 'producer' | 'consumer'

const KINDS: readonly (SpanKindName | undefined)[] = [undefined, 'internal', 'server', 'client', 'producer', 'consumer']
const STATUSES = ['unset', 'ok', 'error'] as const

/** A value with the name of its type on the wire, such as `stringValue`. */
export interface ExportedValue {
  readonly type: string
  readonly value: unknown
}

export interface ExportedLink {
  readonly traceId: string
  readonly spanId: string
  readonly attributes: Readonly<Record<string, ExportedValue>>
}

/** A span as it was exported. Ids are hexadecimal, times are ms since the epoch. */
export interface ExportedSpan {
  /** The resource: the `service.name`, and the other attributes. */
  readonly service: string
  readonly resource: Readonly<Record<string, ExportedValue>>
  readonly traceId: string
  readonly spanId: string
  /** Undefined for the root of a trace. */
  readonly parentSpanId: string | undefined
  readonly name: string
  readonly kind: SpanKindName
  readonly start: number
  readonly end: number
  readonly attributes: Readonly<Record<string, ExportedValue>>
  readonly status: (typeof STATUSES)[number]
  readonly links: readonly ExportedLink[]
  readonly events: readonly string[]
}

export interface OtlpRequest {
  readonly path: string
  readonly contentType: string
  readonly headers: NodeJS.Dict<string | string[]>
  readonly body: Buffer
}

/** An endpoint of OTLP over HTTP that keeps each span, in Protobuf and JSON. */
export class OtlpReceiver implements AsyncDisposable {
  readonly requests: OtlpRequest[] = []
  readonly spans: ExportedSpan[] = []
  /** The status of the answers. A refused request is not decoded. */
  status = 200
  readonly #arrivals = new EventEmitter()
  #server: LoopbackServer | undefined

  static async open(): Promise<OtlpReceiver> {
    const receiver = new OtlpReceiver()
    receiver.#server = await serveHttp((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const { url: path = '', headers } = request
        const contentType = headers['content-type'] ?? ''
        const body = Buffer.concat(chunks)
        receiver.requests.push({ path, contentType, headers, body })
        keep(contentType, body)
        if (receiver.status === 200) receiver.spans.push(...decodeSpans(contentType, body))
        response.writeHead(receiver.status, { 'content-type': contentType })
        response.end(contentType === 'application/json' ? '{}' : '')
        receiver.#arrivals.emit('arrival')
      })
    })
    return receiver
  }

  /** The value of `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  get url(): string {
    return this.#server?.url ?? ''
  }

  /** Everything that was exported, as it came. */
  get bytes(): Buffer {
    return Buffer.concat(this.requests.map(({ body }) => body))
  }

  /** Resolves with the spans as soon as the condition holds. The time-out of the test is the limit. */
  async until(condition: (spans: readonly ExportedSpan[]) => boolean): Promise<readonly ExportedSpan[]> {
    while (!condition(this.spans)) await once(this.#arrivals, 'arrival')
    return this.spans
  }

  /** Resolves with the next request. */
  async nextRequest(): Promise<OtlpRequest | undefined> {
    await once(this.#arrivals, 'arrival')
    return this.requests.at(-1)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]()
  }
}

/** Writes the request to the folder `OTLP_FOLDER`, for the programs in `tools/telemetry`. */
function keep(contentType: string, body: Buffer): void {
  const folder = process.env['OTLP_FOLDER']
  if (folder === undefined) return
  const extension = contentType === 'application/json' ? 'json' : 'pb'
  writeFileSync(join(folder, `${randomUUID()}.${extension}`), body)
}

/** Returns the spans of an export request. @throws Error if it is not one */
export function decodeSpans(contentType: string, body: Buffer): readonly ExportedSpan[] {
  const isJson = contentType === 'application/json'
  if (!isJson && contentType !== 'application/x-protobuf') throw new Error(`${contentType} is no content type of OTLP`)
  const request: unknown = isJson ? JSON.parse(body.toString('utf8')) : decodeProtobuf(body)
  const idOf = (value: unknown): string =>
    isJson ? textOf(value) : Buffer.from(textOf(value), 'base64').toString('hex')
  return listIn(request, 'resourceSpans').flatMap((resourceSpans) => {
    const resource = attributesOf(memberOf(memberOf(resourceSpans, 'resource'), 'attributes'))
    const service = textOf(resource['service.name']?.value)
    return listIn(resourceSpans, 'scopeSpans')
      .flatMap((scopeSpans) => listIn(scopeSpans, 'spans'))
      .map((span) => Object.assign(spanOf(span, idOf), { service, resource }))
  })
}

function spanOf(span: unknown, idOf: (value: unknown) => string): Omit<ExportedSpan, 'service' | 'resource'> {
  const kind = KINDS[Number(memberOf(span, 'kind'))]
  const [traceId, spanId] = [idOf(memberOf(span, 'traceId')), idOf(memberOf(span, 'spanId'))]
  if (kind === undefined || !/^[\da-f]{32}$/.test(traceId) || !/^[\da-f]{16}$/.test(spanId)) {
    throw new Error(`the span has no kind, or an invalid id: ${JSON.stringify(span)}`)
  }
  return {
    traceId,
    spanId,
    parentSpanId: idOf(memberOf(span, 'parentSpanId')) || undefined,
    name: textOf(memberOf(span, 'name')),
    kind,
    start: Number(memberOf(span, 'startTimeUnixNano')) / 1e6,
    end: Number(memberOf(span, 'endTimeUnixNano')) / 1e6,
    attributes: attributesOf(memberOf(span, 'attributes')),
    status: STATUSES[Number(memberOf(memberOf(span, 'status'), 'code') ?? 0)] ?? 'unset',
    links: listIn(span, 'links').map((link) => ({
      traceId: idOf(memberOf(link, 'traceId')),
      spanId: idOf(memberOf(link, 'spanId')),
      attributes: attributesOf(memberOf(link, 'attributes')),
    })),
    events: listIn(span, 'events').map((event) => textOf(memberOf(event, 'name'))),
  }
}

/** Decodes with the code that the OpenTelemetry project generated from its definitions. */
function decodeProtobuf(body: Buffer): unknown {
  const path = ['opentelemetry', 'proto', 'collector', 'trace', 'v1', 'ExportTraceServiceRequest']
  const type = path.reduce<unknown>(memberOf, definitions)
  const [decode, toObject] = [memberOf(type, 'decode'), memberOf(type, 'toObject')]
  if (typeof decode !== 'function' || typeof toObject !== 'function') throw new Error(`${path.join('.')} is missing`)
  const message: unknown = Reflect.apply(decode, type, [body])
  return Reflect.apply(toObject, type, [message, { longs: String, bytes: String }])
}

function attributesOf(list: unknown): Readonly<Record<string, ExportedValue>> {
  const pairs = (Array.isArray(list) ? list : []).map((each: unknown) => {
    const [[type, value] = ['', undefined]] = Object.entries(memberOf(each, 'value') ?? {})
    return [textOf(memberOf(each, 'key')), { type, value: type === 'intValue' ? Number(value) : value }] as const
  })
  return Object.fromEntries(pairs)
}

function listIn(object: unknown, name: string): readonly unknown[] {
  const list = memberOf(object, name)
  return Array.isArray(list) ? list : []
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function memberOf(object: unknown, name: string): unknown {
  const isObject = (typeof object === 'object' && object !== null) || typeof object === 'function'
  return isObject ? Reflect.get(object, name) : undefined
}
