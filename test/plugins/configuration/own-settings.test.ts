/** Settings of a third-party plugin that gateway.yaml only switches on or off. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { svcFor } from '../../support/cli.ts'
import { startGateway } from '../../support/gateway.ts'

const gateway = await startGateway()
t.teardown(() => gateway.stop())
const svc = svcFor(gateway)
const file = join(gateway.home, 'config/gateway.yaml')
mkdirSync(join(gateway.home, 'plugins/sizes'), { recursive: true })
writeFileSync(
	join(gateway.home, 'plugins/sizes/index.js'),
	"export default { name: 'sizes', config: (joi) => joi.object({ size: joi.number(), more: joi.object() }) }",
)

void t.test('a change of a setting keeps a plugin switched on', async (t) => {
	t.equal((await svc(['config', 'set', 'plugins.sizes', 'true'])).code, 0)
	const set = await svc(['config', 'set', 'plugins.sizes.size', '5'])
	t.strictSame([set.code, set.stderr], [0, ''])
	t.strictSame((await svc(['config', 'get', 'plugins.sizes', '--json'])).json(), { size: 5 })
})

void t.test('a change of a setting over HTTP keeps a plugin switched off', async (t) => {
	t.equal((await svc(['config', 'set', 'plugins.sizes', 'false'])).code, 0)
	const changed = await gateway.request('PATCH', '/v1/config', { body: { set: { 'plugins.sizes.more.depth': 3 } } })
	t.equal(changed.status, 200)
	t.match(readFileSync(file, 'utf8'), /sizes:\n +enabled: false\n +more:\n +depth: 3\n/)
	t.equal((await svc(['config', 'set', 'plugins.sizes.enabled', 'true'])).code, 0)
	const running = (await gateway.request('GET', '/v1/plugins')).body.map(({ name }: { name: string }) => name)
	t.ok(running.includes('sizes'))
})
