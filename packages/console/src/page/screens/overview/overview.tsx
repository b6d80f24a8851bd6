import { Empty } from '../../components/feedback.tsx'
import { Page } from '../../components/page.tsx'

export function Overview() {
  return (
    <Page title="Overview">
      <Empty>This screen is not built yet.</Empty>
    </Page>
  )
}
