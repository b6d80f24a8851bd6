import { Empty } from '../../components/feedback.tsx'
import { Page } from '../../components/page.tsx'

export function Trace() {
  return (
    <Page title="Trace">
      <Empty>This screen is not built yet.</Empty>
    </Page>
  )
}
