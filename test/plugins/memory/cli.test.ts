/** svc memory and svc plugins. */
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { svcFor } from '../../support/cli.ts'

const broken = `export default { name: 'broken', start(ctx) { ctx.trouble('the disk\\nis \\x1b[31mfull') } }`
const gateway = await startGateway({
	config: 'plugins: {broken: true}\n',
	files: { 'plugins/broken/index.js': broken },
})
t.teardown(() => gateway.stop())
const svc = svcFor(gateway)
for (const name of ['ada', 'bob']) await gateway.request('POST', '/v1/agents', { body: { name } })

void t.test('memories are added, found, listed and forgotten', async (t) => {
	t.equal(
		(await svc(['memory', 'add', 'ada', 'The office cat', 'is called Biscotto.', '--tag', 'office', 'cat'])).code,
		0,
	)
	const piped = await svc(['memory', 'add', 'ada', '-', '--json'], { input: 'Rent is due\non Monday.\n' })
	t.match(piped.json(), { content: 'Rent is due\non Monday.', tags: [] })
	const found = await svc(['memory', 'search', 'ada', 'what', 'is the cat called?', '--limit', '1'])
	t.match(found.stdout, /SIMILARITY .*\n0\.\d\d .*The office cat is called Biscotto\.\n$/)
	t.match(await svc(['memory', 'search', 'ada', 'cat', '--limit', '0']), { code: 2, stderr: /limit/ })

	const page = await svc(['memory', 'list', 'ada', '--limit', '1'])
	t.match(page.stdout, /Rent is due on Monday\./)
	const [, cursor = ''] = /--cursor (\S+)/.exec(page.stderr) ?? []
	const last = (await svc(['memory', 'list', 'ada', '--cursor', cursor, '--json'])).json()
	t.match(last, { memories: [{ tags: ['office', 'cat'] }], next_cursor: null })

	t.match(await svc(['memory', 'forget', 'ada', piped.json().id]), { code: 2, stderr: /--yes/ })
	t.equal((await svc(['memory', 'forget', 'ada', piped.json().id, '-y'])).code, 0)
	t.equal((await svc(['memory', 'forget', 'ada', piped.json().id, '-y'])).code, 4)
	t.equal((await svc(['memory', 'list', 'ada', '--json'])).json().memories.length, 1)
})

void t.test('svc waits for a compaction, and can undo it', async (t) => {
	for (let n = 0; n < 2; n++)
		await svc(['memory', 'add', 'bob', n === 0 ? 'The same thing twice.' : 'The same thing, twice!'])
	t.match(await svc(['memory', 'undo', 'bob', '-y']), { code: 4, stderr: /no compaction to undo/ })
	const compacted = await svc(['memory', 'compact', 'bob'])
	t.match(compacted, { code: 0, stdout: /Merged 1 group: 2 memories before, 1 now/, stderr: /Compacting 2 memories/ })
	t.match((await svc(['memory', 'compactions', 'bob'])).stdout, / completed +\S+ \S+ +2 +1 /)
	t.match(await svc(['memory', 'undo', 'bob']), { code: 2, stderr: /--yes/ })
	t.match(await svc(['memory', 'undo', 'bob', '-y']), { code: 0, stdout: /2 memories as before/ })
	t.equal((await svc(['memory', 'list', 'bob', '--json'])).json().memories.length, 2)
	const detached = await svc(['memory', 'compact', 'bob', '--detach', '--json'])
	t.match(detached.json(), { status: 'compaction_started', memories_before: 2 })
})

void t.test('svc plugins shows problems', async (t) => {
	const all = await svc(['plugins'])
	t.match(all.stdout, /memory +\S+ +running/)
	t.match(all.stdout, /broken .*the disk is \\x1b\[31mfull/)
	t.match((await svc(['plugins', 'broken'])).stdout, /problem: +the disk/)
	t.match((await svc(['plugins', 'memory', '--json'])).json(), { name: 'memory', state: 'running' })
	t.match(await svc(['plugins', 'nothing']), { code: 4, stderr: /there are: agents,/ })
})
