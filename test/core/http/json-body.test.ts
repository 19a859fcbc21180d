/** JSON bodies are parsed as hapi parses them, except that large ones with too many values are refused. */
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import type { Request, ServerRoute } from '@hapi/hapi'
import t from 'tap'
import { startHost } from '../../support/host.ts'
import { serve } from './serve.ts'

const MIB = 1024 * 1024

const plugin = `export default { name: 'reader', http(server) {
	const shown = (value) => Buffer.isBuffer(value) ? { bytes: value.length } : value === null ? { empty: true } : { keys: Object.keys(value), first: Object.values(value)[0] }
	const route = (path, allow) => server.route({ method: 'POST', path, handler: ({ payload }) => shown(payload), options: { payload: { maxBytes: 32 * ${MIB}, ...(allow && { allow }) } } })
	route('/json')
	route('/both', ['application/json', 'application/octet-stream'])
	route('/text', ['application/json', 'text/plain'])
} }`

void t.test('a large body is parsed, and one with too many values refused', async (t) => {
	const host = await startHost(t.testdir(), { 'reader/index.js': plugin }, { reader: {} })
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

void t.test('a short body is parsed the same whether it arrives with the head or after it', async (t) => {
	/** For each request, whether its body was parsed before hapi could read it. */
	const early: boolean[] = []
	const onAuth = ({ payload }: Request): void => void early.push(payload !== undefined)
	const shown = ({ payload, mime }: Request) =>
		Buffer.isBuffer(payload) ? { bytes: payload.toString('latin1'), mime } : { payload, mime }
	const route = (path: string, payload: object): ServerRoute => ({
		method: 'POST',
		path,
		handler: shown,
		options: { payload },
	})
	const routes = [
		route('/json', {}),
		route('/small', { maxBytes: 40 }),
		route('/large', { maxBytes: 4 * MIB }),
		route('/both', { allow: ['application/json', 'application/octet-stream'] }),
		route('/bytes', { allow: 'application/octet-stream' }),
		route('/raw', { parse: false }),
		route('/other', { override: 'application/json' }),
	]
	const json = 'content-type: application/json'
	const object = '{"a": ["ä", 1]}'
	const cases: [path: string, header: string, body: string | Buffer, isEarly: boolean][] = [
		['/json', json, object, true],
		['/json', 'Content-Type: Application/JSON; charset=UTF-8', object, true],
		['/json', json, '{', true],
		['/json', json, '{"__proto__": {}}', true],
		['/json', json, `[${'0,'.repeat(1_000)}0]`, true],
		['/small', json, object, true],
		['/large', json, object, true],
		['/both', json, object, true],
		['/json', `${json}; charset=latin1`, object, false],
		['/json', 'content-type: application/json;charset=a;charset=b', object, false],
		['/json', 'content-type: text/plain', object, false],
		['/json', 'accept: text/html', object, false],
		['/json', `${json}\r\ncontent-encoding: gzip`, gzipSync(object), false],
		['/json', json, '', false],
		['/json', json, `["${'x'.repeat(70_000)}"]`, false],
		['/small', json, `["${'x'.repeat(40)}"]`, false],
		['/both', 'content-type: application/octet-stream', object, false],
		['/bytes', json, object, false],
		['/raw', json, object, false],
		['/other', json, object, false],
	]
	const builtIn = await serve(t, routes, { onlyBuiltIn: true, onAuth })
	const byHapi = await serve(t, routes, { onlyBuiltIn: false, onAuth })
	/** The complete response to one request on a separate connection. */
	const ask = async ({ port }: { port: number }, path: string, header: string, body: Buffer, isSplit: boolean) => {
		const lines = [`POST ${path} HTTP/1.1`, 'host: x', header, `content-length: ${body.length}`, 'connection: close']
		const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`)
		const socket = connect(port, '127.0.0.1').setNoDelay()
		socket.write(isSplit ? head : Buffer.concat([head, body]))
		if (isSplit) setImmediate(() => socket.write(body))
		return (await text(socket)).replace(/^date: .*\r\n/im, '')
	}
	for (const [path, header, given, isEarly] of cases) {
		const name = `${path} ${header} ${String(given).slice(0, 20)}`
		const body = Buffer.from(given)
		const expected = await ask(byHapi, path, header, body, false)
		t.notOk(early.splice(0).includes(true), `${name}: hapi reads it`)
		t.equal(await ask(builtIn, path, header, body, false), expected, name)
		t.equal(early.splice(0).includes(true), isEarly, `${name}: parsed early`)
		t.equal(await ask(builtIn, path, header, body, true), expected, `${name}, after the head`)
		early.length = 0
	}
})

void t.test('a body over the limit is answered with 413, and an endless one is cut off', async (t) => {
	const route: ServerRoute = { method: 'POST', path: '/json', handler: () => 'done' }
	const { port } = await serve(t, [route], { onlyBuiltIn: true })
	const head = 'POST /json HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n'
	const chunk = `10000\r\n${' '.repeat(0x10000)}\r\n`
	const begin = (headers: string) => {
		const socket = connect(port, '127.0.0.1')
		socket.write(`${head}${headers}\r\n\r\n`)
		return socket
	}

	/** The attachments of one message, as base64. */
	const size = 54 * MIB
	for (const length of ['transfer-encoding: chunked', `content-length: ${size}`]) {
		const socket = begin(`connection: close\r\n${length}`)
		const isChunked = length.endsWith('chunked')
		for (let at = 0; at < size / 0x10000; at++) socket.write(isChunked ? chunk : ' '.repeat(0x10000))
		if (isChunked) socket.write('0\r\n\r\n')
		const answer = await text(socket)
		t.match(answer, /^HTTP\/1.1 413 /, length)
		t.match(answer, /the body may have at most 1 MiB; upload files .*"code":"payload_too_large"/)
	}

	for (const length of ['transfer-encoding: chunked', `content-length: ${1024 * MIB}`]) {
		const endless = begin(length)
		let sent = 0
		const write = () => {
			do sent += chunk.length
			while (endless.write(chunk) && sent < 256 * MIB)
			if (sent >= 256 * MIB) endless.destroy()
		}
		endless.on('drain', write).on('error', () => {})
		write()
		await new Promise((resolve) => endless.once('close', resolve))
		t.ok(sent < 128 * MIB, `${length}: only a part of an endless body is read`)
	}
})
