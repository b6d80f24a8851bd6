import { currentToken, replaceToken } from '../session/session.ts'
import { signedOut, token, untilSignedIn } from '../session/token.ts'
import type { paths } from './management.d.ts'
import { connection } from './store.ts'

/** The paths that have a method. */
type PathsWith<Method extends 'get' | 'post'> = {
  [Path in keyof paths]: paths[Path][Method] extends object ? Path : never
}[keyof paths]

export type GetPath = PathsWith<'get'>

type PostPath = PathsWith<'post'>

type Operation<Path extends keyof paths, Method extends 'get' | 'post'> = NonNullable<paths[Path][Method]>

type JsonOf<Content> = Content extends { readonly 'application/json': infer Json } ? Json : never

type Answer<Of> = Of extends { readonly responses: { readonly 200: { readonly content: infer Content } } }
  ? JsonOf<Content>
  : never

type DataOf<Envelope> = Envelope extends { readonly error: false; readonly data: infer Data } ? Data : never

/** The data of a successful answer, by path. */
export type GetData<Path extends GetPath> = DataOf<Answer<Operation<Path, 'get'>>>

export type PostData<Path extends PostPath> = DataOf<Answer<Operation<Path, 'post'>>>

type QueryOf<Of> = Of extends { readonly parameters: { readonly query?: infer Query } }
  ? Exclude<Query, undefined>
  : never

/** Members that may be absent may be undefined too: neither is sent. */
type Sent<Of> = { [Key in keyof Of]: Partial<Pick<Of, Key>> extends Pick<Of, Key> ? Of[Key] | undefined : Of[Key] }

/** The parameters of a route, by path. Empty text is not sent. */
export type GetQuery<Path extends GetPath> = [QueryOf<Operation<Path, 'get'>>] extends [never]
  ? Record<string, never>
  : Sent<QueryOf<Operation<Path, 'get'>>>

export type PostBody<Path extends PostPath> =
  Operation<Path, 'post'> extends { readonly requestBody: { readonly content: infer Content } }
    ? Sent<JsonOf<Content>>
    : never

type ActionName = PostPath extends infer Path ? (Path extends `/api/actions/${infer Name}` ? Name : never) : never

type ActionPath<Name extends ActionName> = `/api/actions/${Name}` & PostPath

/** An answer that reports an error, or a request that got no answer (`code` is then `NO_ANSWER`). */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly code: string
  readonly status: number

  constructor(code: string, message: string, status: number, options?: ErrorOptions) {
    super(message, options)
    this.code = code
    this.status = status
  }
}

/** The address of the management listener: the page is at `/console/` of it, also behind a proxy that adds a prefix. */
const LISTENER = new URL('../', new URL(location.pathname, location.origin))

/** Returns the address of a route of the management listener. */
export function routeUrl(path: string, query: object = {}): URL {
  const url = new URL(path.replace(/^\//, ''), LISTENER)
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') url.searchParams.set(name, String(value))
  }
  return url
}

/**
 * Reads a route. Rejects with an {@link ApiError}, or with the signal's reason.
 */
export async function get<Path extends GetPath>(
  path: Path,
  query?: GetQuery<Path>,
  signal?: AbortSignal,
): Promise<GetData<Path>> {
  return request<GetData<Path>>(routeUrl(path, query ?? {}), { signal })
}

/** Runs an action of the management API. Rejects as {@link get} does. */
export async function act<Name extends ActionName>(
  name: Name,
  body: PostBody<ActionPath<Name>>,
  signal?: AbortSignal,
): Promise<PostData<ActionPath<Name>>> {
  return request(routeUrl(`/api/actions/${name}`), post(body, signal))
}

interface Envelope<Data> {
  readonly error: boolean
  readonly error_string: string
  readonly data: Data
}

interface Init {
  readonly method?: 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal?: AbortSignal | null | undefined
}

/** Returns a request with a body. Forms of other sites cannot send its type. */
export function post(body: unknown, signal: AbortSignal | undefined): Init {
  return { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body), signal }
}

/** Sends a request with the token of the operator. */
export async function send(url: URL, { signal = null, ...init }: Init, bearer: string | undefined): Promise<Response> {
  const headers = { ...init.headers, ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }) }
  return fetch(url, { ...init, signal, headers, credentials: 'omit', cache: 'no-store', redirect: 'error' })
}

/** Returns what a request rejects with that lost its connection, or that was given up. */
export function noAnswer(cause: unknown, signal: Init['signal'], text = 'The server does not answer.'): unknown {
  return signal?.aborted === true ? signal.reason : new ApiError('NO_ANSWER', text, 0, { cause })
}

/** The route that needs no token. */
const SIGN_IN = routeUrl('/api/sign_in').pathname

async function request<Data>(url: URL, init: Init): Promise<Data> {
  // The screen that is kept behind the question for a token would ask with the refused one.
  if (url.pathname !== SIGN_IN) await untilSignedIn(init.signal ?? undefined)
  const bearer = await currentToken()
  let response: Response
  let envelope: Envelope<Data>
  try {
    response = await send(url, init, bearer)
    envelope = await response.json()
  } catch (cause) {
    if (init.signal?.aborted !== true) connection.set('lost')
    throw noAnswer(cause, init.signal)
  }
  if (!envelope.error) {
    connection.set('connected')
    return envelope.data
  }
  const code = codeOf(envelope.data)
  connection.set(code === 'NOT_READY' ? 'starting' : 'connected')
  if (response.status === 401) {
    if (await replaceToken(bearer)) return request(url, init)
    if (token.value === bearer) signedOut.set(true)
  }
  throw new ApiError(code, envelope.error_string, response.status)
}

/** An error without data is that of a server that is not ready. */
function codeOf(data: unknown): string {
  if (typeof data === 'object' && data !== null && 'code' in data) return String(data.code)
  return 'NOT_READY'
}

type Readiness = paths['/ready']['get']['responses'][200]['content']['application/json']

/** Reads the probe `/ready`, whose checks say why a node is not ready. It has another form than the API. */
export async function readReadiness(signal: AbortSignal): Promise<Readiness> {
  const response = await fetch(routeUrl('/ready'), { signal, credentials: 'omit', cache: 'no-store' })
  return response.json()
}
