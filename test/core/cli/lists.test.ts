/** Lists of heartbeats, webhooks, skills and MCP servers, for one agent or for all. */
import t from 'tap'
import { exitCodes } from '../../../core/cli/contract.ts'
import { svcFor } from '../../support/cli.ts'
import { startGateway } from '../../support/gateway.ts'

const gateway = await startGateway()
t.teardown(() => gateway.stop())
const svc = svcFor(gateway)

interface Noun {
	/** The path of the request that adds one; default the noun. */
	path?: string
	body: object
	id(one: Record<string, string>): string | undefined
}

const nouns: Record<string, Noun> = {
	heartbeats: { body: { every: '1d', prompt: 'x' }, id: (one) => one.id },
	webhooks: { body: { slug: 'hook' }, id: (one) => one.slug },
	skills: {
		path: 'skills/install',
		body: { content: '---\nname: tea\ndescription: Makes tea\n---\nBoil.' },
		id: (one) => one.id,
	},
	mcp: {
		body: { name: 'far', transport: 'http', url: 'http://127.0.0.1:9/mcp' },
		id: (one) => one.id,
	},
}

void t.test('an empty list says so', async (t) => {
	for (const noun of Object.keys(nouns)) {
		const { code, stdout } = await svc([noun])
		t.equal(code, 0)
		t.match(stdout, /^No /)
	}
})

for (const [noun, { path, body, id }] of Object.entries(nouns)) {
	void t.test(`${noun} are listed for one agent, or for all with its name`, async (t) => {
		for (const name of ['ada', 'bob']) {
			await gateway.request('POST', '/v1/agents', { body: { name } })
			const { status } = await gateway.request('POST', `/v1/agents/${name}/${path ?? noun}`, { body })
			t.ok(status === 200 || status === 201, `${noun} of ${name}: ${status}`)
		}
		const of = async (...agent: string[]) => (await svc([noun, 'list', ...agent, '--json'])).json()
		const [ada, bob] = [await of('ada'), await of('bob')]
		t.equal(ada.length, 1)
		const all = await of()
		t.strictSame(all.map(id), [...ada, ...bob].map(id))
		t.strictSame(
			all.map((one: { agent: string }) => one.agent),
			['ada', 'bob'],
		)
		const { stdout } = await svc([noun])
		t.match(stdout, /^AGENT +\w/)
		t.match(stdout, /\nada +[^]*\nbob +/)
		t.notMatch((await svc([noun, 'list', 'bob'])).stdout, /^AGENT/)
	})
}

void t.test('an agent that does not exist is still an error', async (t) => {
	for (const noun of Object.keys(nouns)) t.equal((await svc([noun, 'list', 'nobody'])).code, exitCodes.not_found)
})
