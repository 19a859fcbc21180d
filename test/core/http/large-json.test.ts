/** Large JSON bodies: as hapi parses them, but refused before they are parsed if they hold too many values. */
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { startHost } from '../../support/host.ts'

const MIB = 1024 * 1024

const plugin = `export default { name: 'taker', http(server) {
	const shown = (value) => Buffer.isBuffer(value) ? { bytes: value.length } : value === null ? { empty: true } : { keys: Object.keys(value), first: Object.values(value)[0] }
	const route = (path, allow) => server.route({ method: 'POST', path, handler: ({ payload }) => shown(payload), options: { payload: { maxBytes: 32 * ${MIB}, ...(allow && { allow }) } } })
	route('/json')
	route('/both', ['application/json', 'application/octet-stream'])
	route('/text', ['application/json', 'text/plain'])
} }`

void t.test('a large body', async (t) => {
	const host = await startHost(t.testdir(), { 'taker/index.js': plugin }, { taker: {} })
	t.teardown(() => host.stop())
	const post = async (path: string, body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) => {
		const response = await fetch(host.gateway.status.url('main') + path, {
			method: 'POST',
			headers: { 'content-type': 'application/json', ...headers },
			body,
		})
		return { status: response.status, body: (await response.json()) as Record<string, unknown> }
	}
	const long = 'a,[{"\\'.repeat(MIB)

	t.same(await post('/json', JSON.stringify({ text: 'ü\ud83d', long })), {
		status: 200,
		body: { keys: ['text', 'long'], first: 'ü\ud83d' },
	})
	t.same(
		(await post('/json', JSON.stringify({ long: [long] }))).body,
		{ keys: ['long'], first: [long] },
		'strings do not count',
	)
	const zipped = new Uint8Array(gzipSync(JSON.stringify({ zipped: long })))
	t.match((await post('/json', zipped, { 'content-encoding': 'gzip' })).body, { keys: ['zipped'] })
	t.same((await post('/json', '')).body, { empty: true })
	t.same((await post('/both', 'bytes', { 'content-type': 'application/octet-stream' })).body, { bytes: 5 })
	t.match((await post('/both', '{"a":1}')).body, { keys: ['a'] })
	t.match((await post('/text', 'text', { 'content-type': 'text/plain' })).body, { keys: ['0', '1', '2', '3'] })

	const refused = { status: 400, body: { code: 'invalid_request', message: /not valid JSON/ } }
	t.match(await post('/json', '{'), refused)
	t.match(await post('/json', '{"__proto__": {"a": 1}}'), refused)
	const tooMany = { status: 400, body: { code: 'invalid_request', message: 'the body holds more than 100000 values' } }
	for (const [name, part] of Object.entries({
		numbers: '0,',
		objects: '{},',
		pairs: '"":0,',
		blanks: '0 , ',
		nested: '[',
	}))
		t.match(await post('/json', `{"a":[${part.repeat(Math.ceil((2 * MIB) / part.length))}0]}`), tooMany, name)
	t.match(await post('/json', `[${'0,'.repeat(200_000)}0]`), tooMany, 'a smaller body')
	const fits = { rows: Array.from({ length: 20_000 }, (_, at) => [at, 'x'.repeat(60), true]) }
	t.match(await post('/json', JSON.stringify(fits)), { status: 200, body: { first: { length: 20_000 } } })
})
