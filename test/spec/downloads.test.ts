/** Downloads of agents from slow servers: one agent cannot take all places. */
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { startGateway } from '../support/gateway.ts'
import type { Answer, Reply } from '../support/gateway.ts'
import { listenOnLoopback } from '../support/loopback.ts'
import { assertError } from '../support/error-response.ts'
import type { ExpectedError } from '../support/error-response.ts'
import { skillText } from '../support/skills.ts'
import { eventually } from '../support/wait.ts'

const LIMIT = 8

/** Pending requests to `/slow`, which the test answers. */
const slow: ServerResponse[] = []
const server = createServer((request, response) => {
	response.setHeader('content-type', 'text/markdown')
	if (request.url === '/slow') slow.push(response)
	else response.end(skillText('greeter', 'Greet people.'))
})
const { port, stop } = await listenOnLoopback(server)
const host = `127.0.0.1:${port}`
const gateway = await startGateway({
	config: `skills: { allow_private_urls: true }\nattachments: { allowed_hosts: ['${host}'] }\n`,
})
t.teardown(async () => {
	await gateway.stop()
	await stop()
})
for (const name of ['ada', 'bob']) await gateway.request('POST', '/v1/agents', { body: { name } })

const downloads: Record<string, { busy: ExpectedError; fetch(agent: string, path: string): Promise<Reply<Answer>> }> = {
	'a skill': {
		busy: { status: 429, code: 'rate_limited', message: /8 skills are already being downloaded/ },
		fetch: (agent, path) =>
			gateway.request('POST', `/v1/agents/${agent}/skills/install`, { body: { url: `http://${host}${path}` } }),
	},
	'an attachment': {
		busy: { status: 503, code: 'unavailable', message: /8 attachments are being fetched/ },
		fetch: (agent, path) =>
			gateway.request('POST', `/v1/agents/${agent}/runs`, {
				body: { prompt: 'Look', attachments: [{ url: `http://${host}${path}` }] },
			}),
	},
}

for (const [what, { fetch, busy }] of Object.entries(downloads)) {
	void t.test(`one agent cannot keep others from fetching ${what}`, async (t) => {
		slow.length = 0
		const waiting = Array.from({ length: LIMIT }, () => fetch('ada', '/slow'))
		await eventually(() => slow.length === LIMIT)
		assertError(t, await fetch('ada', '/fast'), busy)
		t.match(await fetch('bob', '/fast'), { status: what === 'a skill' ? 201 : 200 })
		for (const response of slow) response.writeHead(404).end()
		for (const reply of await Promise.all(waiting)) t.equal(reply.status, 400)
		t.match(await fetch('ada', '/fast'), { status: what === 'a skill' ? 201 : 200 }, 'places are free again')
	})
}
