/** The titles of all screens, by their keys. */
export const SCREENS = {
  c: 'Channels',
  d: 'Dead letters',
  r: 'Requests',
  a: 'Agents',
  t: 'Tasks and streams',
  x: 'Tools',
  p: 'Map',
  l: 'Live tail',
  m: 'Trace',
  u: 'Audit',
  w: 'Webhooks',
  s: 'Security',
  e: 'Settings',
  o: 'Overview',
}
