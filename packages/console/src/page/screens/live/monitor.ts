import { routeUrl } from '../../api/client.ts'
import { currentToken } from '../../session/session.ts'
import { untilSignedIn } from '../../session/token.ts'
import type { ChannelType } from '../../components/values.tsx'

/** A message that the monitor showed. */
export interface Seen {
  /** The number of the frame in this page: ids of messages repeat, once in and once for each delivery. */
  readonly number: number
  readonly time: string
  readonly direction: 'in' | 'out'
  readonly type: ChannelType
  readonly channel: string
  readonly client: string
  readonly id: string
  readonly metadata: string
  readonly tags: Readonly<Record<string, string>>
  readonly body: string
  readonly body_encoding?: 'base64'
  readonly body_size: number
  readonly truncated: boolean
}

interface MonitorFilter {
  readonly channel?: string | undefined
  readonly type?: string | undefined
  readonly direction?: string | undefined
}

export type MonitorState = 'connecting' | 'open' | 'closed'

interface MonitorEvents {
  readonly onState: (state: MonitorState, reason?: string) => void
  readonly onMessage: (message: Seen) => void
  readonly onDropped: (total: number) => void
}

const RETRY_MS = 2_000

let lastNumber = 0

/** Opens the monitor's WebSocket, and opens it again when it breaks. Returns a function that ends it. */
export function openMonitor(filter: MonitorFilter, events: MonitorEvents): () => void {
  let ended = false
  let socket: WebSocket | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  const connect = async (): Promise<void> => {
    const url = routeUrl('/api/monitor', { ...filter, max_body_size: 4_096 })
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
    let reason: string | undefined
    events.onState('connecting')
    await untilSignedIn()
    const bearer = await currentToken()
    if (ended) return
    socket = new WebSocket(url, protocolsOf(bearer))
    socket.addEventListener('open', () => events.onState('open'))
    socket.addEventListener('message', ({ data }) => {
      const frame: Frame = JSON.parse(String(data))
      if (frame.kind === 'message') events.onMessage({ ...frame, number: ++lastNumber })
      else if (frame.kind === 'dropped') events.onDropped(frame.total)
      else if (frame.kind === 'end') reason = frame.reason
    })
    socket.addEventListener('close', () => {
      if (ended) return
      events.onState('closed', reason)
      timer = setTimeout(() => void connect(), RETRY_MS)
    })
  }
  void connect()
  return () => {
    ended = true
    clearTimeout(timer)
    socket?.close()
  }
}

type Frame =
  | (Omit<Seen, 'number'> & { readonly kind: 'message' })
  | { readonly kind: 'dropped'; readonly total: number }
  | { readonly kind: 'end'; readonly reason: string }
  | { readonly kind: 'started' | 'stopped' | 'error' }

/** A browser cannot set a header on a WebSocket: the token is a subprotocol, which no log has, and not a part of the URL. */
function protocolsOf(bearer: string | undefined): string[] {
  return bearer === undefined ? [] : ['signalbox.monitor', `signalbox.bearer.${bearer}`]
}
