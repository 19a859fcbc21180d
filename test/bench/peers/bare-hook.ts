/** The bare counterpart of a webhook: a hapi route that verifies the HMAC and writes the body as one durable LMDB record. */
import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import hapi from '@hapi/hapi'
import { open } from 'lmdb'
import { answerWith } from '../peer.ts'

const folder = mkdtempSync(join(tmpdir(), 'svc-bench-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
process.on('SIGTERM', () => process.exit(0))
// As in the gateway, a put settles once it is on the disk.
const db = open<Buffer, string>({ path: folder, encoding: 'binary', overlappingSync: false })
const server = hapi.server({ host: '127.0.0.1', port: 0 })
let secret = ''

server.route<{ Payload: Buffer; Headers: Record<string, string> }>({
	method: 'POST',
	path: '/v1/hooks/{token}',
	options: { payload: { parse: false, output: 'data', maxBytes: 1024 * 1024 } },
	handler: async ({ headers, payload }, h) => {
		const given = Buffer.from((headers['x-signature'] ?? '').slice('sha256='.length), 'hex')
		const expected = createHmac('sha256', secret).update(payload).digest()
		if (given.length !== expected.length || !timingSafeEqual(given, expected)) return h.response().code(401)
		const delivery_id = randomUUID()
		await db.put(delivery_id, payload)
		return { status: 'accepted', delivery_id }
	},
})
// Connections are idle while the other side is measured.
server.listener.keepAliveTimeout = 60_000
await server.start()

answerWith({
	url: () => server.info.uri,
	know: (given: string) => void (secret = given),
})
