import type { FunctionComponent } from 'preact'

import type { Place } from '../router/location.ts'

export interface ScreenProps {
  readonly place: Place
}

/** A screen of the console. */
export interface Screen {
  /** The first part of the place, such as `channels` in `#/channels`. */
  readonly id: string
  readonly title: string
  /** The letter that opens the screen after `g`. */
  readonly key: string
  readonly group: 'Messages' | 'Agents' | 'Watch' | 'Server'
  /** Loads the screen's component when it is opened first. */
  readonly load: () => Promise<FunctionComponent<ScreenProps>>
}

/** Every screen, in the order of the navigation. */
export const SCREENS: readonly Screen[] = [
  {
    id: 'overview',
    title: 'Overview',
    key: 'o',
    group: 'Messages',
    load: async () => (await import('./overview/overview.tsx')).Overview,
  },
  {
    id: 'channels',
    title: 'Channels',
    key: 'c',
    group: 'Messages',
    load: async () => (await import('./channels/channels.tsx')).Channels,
  },
  {
    id: 'dead-letters',
    title: 'Dead letters',
    key: 'd',
    group: 'Messages',
    load: async () => (await import('./dead-letters/dead-letters.tsx')).DeadLetters,
  },
  {
    id: 'requests',
    title: 'Requests',
    key: 'r',
    group: 'Messages',
    load: async () => (await import('./requests/requests.tsx')).Requests,
  },
  {
    id: 'schedules',
    title: 'Schedules',
    key: 'h',
    group: 'Messages',
    load: async () => (await import('./schedules/schedules.tsx')).Schedules,
  },
  {
    id: 'agents',
    title: 'Agents',
    key: 'a',
    group: 'Agents',
    load: async () => (await import('./agents/agents.tsx')).Agents,
  },
  {
    id: 'tasks',
    title: 'Tasks and streams',
    key: 't',
    group: 'Agents',
    load: async () => (await import('./tasks/tasks.tsx')).Tasks,
  },
  {
    id: 'tools',
    title: 'Tools',
    key: 'x',
    group: 'Agents',
    load: async () => (await import('./tools/tools.tsx')).Tools,
  },
  {
    id: 'map',
    title: 'Map',
    key: 'p',
    group: 'Watch',
    load: async () => (await import('./map/map.tsx')).TrafficMap,
  },
  {
    id: 'live',
    title: 'Live tail',
    key: 'l',
    group: 'Watch',
    load: async () => (await import('./live/live.tsx')).Live,
  },
  {
    id: 'trace',
    title: 'Trace',
    key: 'm',
    group: 'Watch',
    load: async () => (await import('./trace/trace.tsx')).Trace,
  },
  {
    id: 'audit',
    title: 'Audit',
    key: 'u',
    group: 'Watch',
    load: async () => (await import('./audit/audit.tsx')).Audit,
  },
  {
    id: 'webhooks',
    title: 'Webhooks',
    key: 'w',
    group: 'Server',
    load: async () => (await import('./webhooks/webhooks.tsx')).Webhooks,
  },
  {
    id: 'security',
    title: 'Security',
    key: 's',
    group: 'Server',
    load: async () => (await import('./security/security.tsx')).Security,
  },
  {
    id: 'settings',
    title: 'Settings',
    key: 'e',
    group: 'Server',
    load: async () => (await import('./settings/settings.tsx')).Settings,
  },
]
