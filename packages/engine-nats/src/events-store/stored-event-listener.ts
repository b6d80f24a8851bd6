import type { StoredEvent } from '@signalbox/broker-core'

export type StoredEventListener = (event: StoredEvent) => void | Promise<void>
