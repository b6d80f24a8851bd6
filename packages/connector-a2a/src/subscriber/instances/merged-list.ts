import { Buffer } from 'node:buffer'

import { encodeText } from '@signalbox/broker-core'
import type { JsonObject } from '@signalbox/http-kit'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import { isJsonObject, jsonRpcErrorText, readJson } from '@signalbox/http-kit/internal'

import type { AgentQuery } from '../../requests/agent-query.ts'
import type { AgentReply } from '../../requests/agent-reply.ts'
import { findMethod, memberOf } from '../../wire/index.ts'
import type { CallResult } from '../agent-call.ts'
import { soughtTexts, mentions, parsedBody } from '../json-bodies.ts'

/** The page size of A2A for requests without one. */
const DEFAULT_PAGE_SIZE = 50
const MAX_PAGE_SIZE = 100

/** The position in the list of one instance. */
interface Position {
  /** The page token of the instance; empty for its first page. */
  readonly token: string
  /** The tasks of that page that the caller has already. */
  readonly skip: number
  /** True after the last task. */
  readonly done: boolean
  /** The number of all its tasks, as it said last. */
  readonly total: number
}

/** The page of one instance. */
interface InstancePage {
  readonly instanceId: string
  readonly at: Position
  /** The tasks that the caller does not have yet. */
  readonly tasks: readonly JsonObject[]
  readonly next: string
  readonly result: JsonObject
}

const BEGIN: Position = { token: '', skip: 0, done: false, total: 0 }

/** Cheaper than parsing every request. */
const MENTIONED = soughtTexts(['ListTasks'])

/** One request for the tasks of an agent with several instances, each of which lists its own. */
export class MergedList {
  readonly #query: AgentQuery
  readonly #request: JsonObject
  readonly #params: JsonObject
  readonly #positions: ReadonlyMap<string, Position>
  readonly #pages: InstancePage[] = []
  #failure: CallResult | undefined

  private constructor(query: AgentQuery, request: JsonObject, positions: ReadonlyMap<string, Position>) {
    this.#query = query
    this.#request = request
    this.#params = isJsonObject(request['params']) ? request['params'] : {}
    this.#positions = positions
  }

  /** Returns undefined for any other request, and the reply to a page token that is not one of the gateway's. */
  static of(query: AgentQuery): MergedList | AgentReply | undefined {
    const { body, mode } = query
    if (mode !== 'call' || !mentions(body, MENTIONED)) return undefined
    const request = parsedBody(body)
    if (!isJsonObject(request) || typeof request['method'] !== 'string') return undefined
    if (findMethod(request['method'])?.method.operation !== 'list') return undefined
    const { params } = request
    const token = isJsonObject(params) ? memberOf(params, 'pageToken') : undefined
    const positions = readToken(token ?? '')
    return positions === undefined ? invalidToken() : new MergedList(query, request, positions)
  }

  /** Returns the request for one instance; undefined if the caller has all its tasks. */
  requestTo(instanceId: string): AgentQuery | undefined {
    const { token, done } = this.#positionOf(instanceId)
    if (done) return undefined
    const { pageToken: _, page_token: __, ...params } = this.#params
    const own = { ...this.#request, params: token === '' ? params : { ...params, pageToken: token } }
    return { ...this.#query, body: encodeText(JSON.stringify(own)) }
  }

  /** Adds the answer of an instance. One that cannot be asked, or refuses, adds no tasks. */
  add(instanceId: string, answer: CallResult): void {
    const response = answer.reply.failure === undefined ? parsedBody(answer.reply.body) : undefined
    const result = isJsonObject(response) ? response['result'] : undefined
    if (!isJsonObject(result)) {
      this.#failure ??= answer
      return
    }
    const at = this.#positionOf(instanceId)
    const listed: readonly unknown[] = Array.isArray(result['tasks']) ? result['tasks'] : []
    const next = memberOf(result, 'nextPageToken')
    const total = Number(memberOf(result, 'totalSize') ?? at.total)
    this.#pages.push({
      instanceId,
      at: { ...at, total },
      tasks: listed.filter((task) => isJsonObject(task)).slice(at.skip),
      next: typeof next === 'string' ? next : '',
      result,
    })
  }

  /** Returns the answer: the newest tasks of all instances, fewer than asked for where an instance has to be asked again, or the failure if no instance has answered. */
  result(): CallResult {
    if (this.#pages.length === 0 && this.#failure !== undefined) return this.#failure
    const pageSize = memberOf(this.#params, 'pageSize')
    const size = isPageSize(pageSize) ? pageSize : DEFAULT_PAGE_SIZE
    const newest = mergedTasks(this.#pages, size)
    const positions = new Map(this.#positions)
    for (const page of this.#pages) {
      const taken = newest.filter((entry) => entry.page === page).length
      positions.set(page.instanceId, after(page, taken))
    }
    const merged = {
      ...this.#pages[0]?.result,
      tasks: newest.map(({ task }) => task),
      nextPageToken: [...positions.values()].every(({ done }) => done) ? '' : tokenOf(positions),
      totalSize: [...positions.values()].reduce((sum, { total }) => sum + total, 0),
    }
    const body = encodeText(JSON.stringify({ jsonrpc: '2.0', id: null, result: merged }))
    return { reply: { executed: true, error: '', status: 200, body } }
  }

  #positionOf(instanceId: string): Position {
    return this.#positions.get(instanceId) ?? BEGIN
  }
}

/**
 * Returns the tasks of the pages, the newest first, each page in its own order; at most `size`, and fewer where a page ends whose
 * instance has more: the next of its tasks may be newer than those of the others.
 */
function mergedTasks(pages: readonly InstancePage[], size: number): { page: InstancePage; task: JsonObject }[] {
  const heads = new Map(pages.map((page) => [page, 0]))
  const merged: { page: InstancePage; task: JsonObject }[] = []
  while (merged.length < size) {
    let newest: { page: InstancePage; task: JsonObject } | undefined
    for (const [page, head] of heads) {
      const task = page.tasks[head]
      if (task === undefined && page.next !== '') return merged
      if (task !== undefined && (newest === undefined || timeOf(task) > timeOf(newest.task))) newest = { page, task }
    }
    if (newest === undefined) return merged
    merged.push(newest)
    heads.set(newest.page, (heads.get(newest.page) ?? 0) + 1)
  }
  return merged
}

function after({ at, tasks, next }: InstancePage, taken: number): Position {
  if (taken < tasks.length) return { ...at, skip: at.skip + taken }
  return { token: next, skip: 0, done: next === '', total: at.total }
}

/** Tasks are listed by the time of their last status, the newest first. */
function timeOf({ status }: JsonObject): number {
  const time = isJsonObject(status) ? Date.parse(String(status['timestamp'])) : Number.NaN
  return Number.isNaN(time) ? 0 : time
}

function isPageSize(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= MAX_PAGE_SIZE
}

function tokenOf(positions: ReadonlyMap<string, Position>): string {
  const entries = [...positions].map(([id, { token, skip, done, total }]) => [id, token, skip, done, total])
  return Buffer.from(JSON.stringify(entries)).toString('base64url')
}

/** Returns undefined for a token that the gateway has not made. */
function readToken(token: unknown): ReadonlyMap<string, Position> | undefined {
  if (token === '') return new Map()
  if (typeof token !== 'string') return undefined
  const entries = readJson(Buffer.from(token, 'base64url').toString())?.value
  if (!Array.isArray(entries)) return undefined
  const positions = new Map<string, Position>()
  for (const entry of entries) {
    const [id, own, skip, done, total]: readonly unknown[] = Array.isArray(entry) ? entry : []
    if (typeof id !== 'string' || typeof own !== 'string') return undefined
    if (typeof skip !== 'number' || typeof total !== 'number') return undefined
    positions.set(id, { token: own, skip, done: done === true, total })
  }
  return positions
}

function invalidToken(): AgentReply {
  const message = 'invalid params: params.pageToken is not a token of this agent; use the nextPageToken of an answer'
  const body = encodeText(jsonRpcErrorText(new JsonRpcError(JSON_RPC_CODES.INVALID_PARAMS, message)))
  return { executed: true, error: '', status: 200, body, whole: true, unsent: true }
}
