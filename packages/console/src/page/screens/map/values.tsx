import { count, rate, TYPE_NAMES } from '../../components/values.tsx'
import type { Column, MapNode } from './layout.ts'

/** Returns a rate such as `12/s`, or of rare messages `3/min` or `2/h`. */
export function pace(messages: number, seconds: number): string {
  const perSecond = messages / seconds
  if (messages === 0 || perSecond >= 1) return rate(Math.round(perSecond * 10) / 10)
  const perMinute = perSecond * 60
  return perMinute >= 1 ? `${count(perMinute)}/min` : `${count(Math.max(1, perMinute * 60))}/h`
}

/** Returns the text by which operators know a node. */
export function nameOf({ kind, name, nodes = 0, endpoint_host: host }: MapNode): string {
  return kind === 'more' ? `${count(nodes)} more` : (host ?? name)
}

export function kindOf({ kind, type, column }: MapNode): string {
  if (kind === 'more') return OTHERS[column]
  if (kind === 'channel') return type === undefined ? 'Channel' : TYPE_NAMES[type]
  return KINDS[kind]
}

const OTHERS: Readonly<Record<Column, string>> = {
  left: 'callers',
  middle: 'channels and agents',
  right: 'receivers and webhooks',
}

const KINDS: Readonly<Record<Exclude<MapNode['kind'], 'channel' | 'more'>, string>> = {
  caller: 'Caller',
  agent: 'Agent',
  receiver: 'Receiver',
  webhook: 'Webhook',
}
