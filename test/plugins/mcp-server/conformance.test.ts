/** Scenarios of the official suite that our other tests do not cover; `npm run conformance` runs all of them. */
import t from 'tap'
import { runServerSuite } from '../../conformance/suite.ts'
import { startGateway } from '../../support/gateway.ts'
import { config } from './client.ts'

const gateway = await startGateway({ config })
t.teardown(() => gateway.stop())

for (const scenario of ['dns-rebinding-protection', 'server-sse-multiple-streams']) {
	void t.test(scenario, async (t) => {
		const { code, text } = await runServerSuite(gateway.url, ['--scenario', scenario])
		t.equal(code, 0, text)
		t.match(text, /Passed: 2\/2, 0 failed, 0 warnings/)
	})
}
