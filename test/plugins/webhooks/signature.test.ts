/** Wrong signatures: other headers, bodies, secrets and notations of the digest. HOOK_SIGNATURES is their number, default 10,000. */
import { createHash, createHmac, createSecretKey } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { signatureProblem } from '../../../plugins/webhooks/signature.ts'
import { sign } from './sender.ts'

const COUNT = Number(process.env.HOOK_SIGNATURES ?? 10_000)
const secret = '8f'.repeat(16) + '0123456789abcdef'.repeat(2)
const key = createSecretKey(secret, 'utf8')
const body = Buffer.from(JSON.stringify({ action: 'opened', number: 7, text: 'Grüße 😀' }))
const right = sign(secret, body)
const problem = (header: unknown, of: Buffer = body): string | null =>
	signatureProblem({ 'x-signature': header as string }, key, of)

const hex = right.slice('sha256='.length)
const digest = Buffer.from(hex, 'hex')
const isRight = (header: string): boolean =>
	header.startsWith('sha256=') && header.slice('sha256='.length).toLowerCase() === hex
const position = fc.nat(hex.length - 1)

/** Headers to refuse; those that are right by chance are skipped. */
const headers = fc.oneof(
	// Another digit in one place, of any alphabet.
	fc
		.tuple(position, fc.constantFrom(...Array.from('0123456789abcdefABCDEFgG-_+/= ,٣३３𝟛０Ａａ\u200b\0\t\n\r\u00e9')))
		.map(([at, digit]) => `sha256=${hex.slice(0, at)}${digit}${hex.slice(at + 1)}`),
	// Truncated, doubled, recombined.
	fc.nat(right.length - 1).map((length) => right.slice(0, length)),
	fc.nat(right.length - 1).map((from) => right.slice(from + 1)),
	fc.tuple(position, position).map(([at, from]) => `sha256=${hex.slice(0, at)}${hex.slice(from)}`),
	fc.string({ minLength: 1, maxLength: 8 }).map((more) => right + more),
	fc.string({ minLength: 1, maxLength: 8 }).map((before) => before + right),
	fc.constantFrom(`${right}, ${right}`, `${right},${right}`, `${right};`, `${right}\n`, ` ${right}`, `"${right}"`),
	// In another notation.
	fc.constantFrom(hex, `sha1=${hex}`, `SHA256=${hex}`, `Sha256=${hex}`, `sha256:${hex}`, `sha-256=${hex}`, `v1=${hex}`),
	fc.constantFrom(right.toUpperCase(), `sha256= ${hex}`, `sha256=0x${hex}`),
	fc
		.constantFrom('base64', 'base64url', 'latin1', 'utf8')
		.map((encoding) => `sha256=${digest.toString(encoding as 'hex')}`),
	fc.constantFrom('', 'sha256=', 'sha256', 'null', 'undefined', '[object Object]', `sha256=${'0'.repeat(64)}`),
	// Digests of something else.
	fc
		.constantFrom('sha1', 'sha384', 'sha512', 'md5', 'sha3-256')
		.map((name) => `sha256=${createHmac(name, secret).update(body).digest('hex')}`),
	fc.constant(`sha256=${createHash('sha256').update(body).digest('hex')}`),
	fc.constant(`sha256=${createHash('sha256').update(secret).update(body).digest('hex')}`),
	fc
		.constantFrom('', secret.slice(1), secret.toUpperCase(), ` ${secret}`, `${secret}\n`, hex)
		.map((other) => sign(other, body)),
	fc.constant(`sha256=${createHmac('sha256', Buffer.from(secret, 'hex')).update(body).digest('hex')}`),
	fc
		.tuple(fc.nat(secret.length - 1), fc.constantFrom('x', 'y', 'z'))
		.map(([at, other]) => sign(secret.slice(0, at) + other + secret.slice(at + 1), body)),
	fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => `sha256=${Buffer.from(bytes).toString('hex')}`),
	fc.string({ maxLength: 100 }),
)

const bodies = fc.oneof(
	fc.tuple(fc.nat(body.length - 1), fc.integer({ min: 1, max: 255 })).map(([at, bits]) => {
		const other = Buffer.from(body)
		other.writeUInt8(other.readUInt8(at) ^ bits, at)
		return other
	}),
	fc.nat(body.length - 1).map((length) => body.subarray(0, length)),
	fc.string({ minLength: 1, maxLength: 8 }).map((more) => Buffer.concat([body, Buffer.from(more)])),
	fc.constantFrom(' ', '\n', '\0', '\ufeff').map((before) => Buffer.concat([Buffer.from(before), body])),
	fc.constant(Buffer.from(JSON.stringify(JSON.parse(body.toString()), null, 1))),
)

void t.test('a valid signature is accepted', async (t) => {
	t.equal(problem(right), null)
	t.equal(signatureProblem({ 'x-hub-signature-256': right }, key, body), null)
	t.equal(signatureProblem({ 'x-hub-signature-256': right, 'x-signature': right }, key, body), null)
	t.equal(problem(sign(secret, Buffer.alloc(0)), Buffer.alloc(0)), null, 'of an empty body')
	t.equal(problem(`sha256=${hex.toUpperCase()}`), null, 'hexadecimal digits in upper case')
	t.equal(problem(`sha256=${hex.slice(0, 32).toUpperCase()}${hex.slice(32)}`), null, 'in both cases')
})

void t.test('if both headers are sent, both must be valid', async (t) => {
	const wrong = sign('another', body)
	for (const other of [wrong, '', 'sha256=', hex]) {
		t.match(signatureProblem({ 'x-hub-signature-256': right, 'x-signature': other }, key, body), /^X-Signature /)
		t.match(
			signatureProblem({ 'x-hub-signature-256': other, 'x-signature': right }, key, body),
			/^X-Hub-Signature-256 /,
		)
	}
})

void t.test('the error for a missing signature states what to send', async (t) => {
	t.match(signatureProblem({}, key, body), /missing; send the header X-Signature/)
	t.match(signatureProblem({ authorization: right, 'x-hub-signature': right, signature: right }, key, body), /missing/)
})

void t.test(`${COUNT} wrong signatures are refused`, async (t) => {
	let refused = 0
	const numRuns = Math.ceil((COUNT * 4) / 5)
	fc.assert(
		fc.property(headers, (header) => {
			fc.pre(!isRight(header))
			if (problem(header) === null) return false
			refused++
			return true
		}),
		{ numRuns, maxSkipsPerRun: 1_000 },
	)
	fc.assert(
		fc.property(bodies, (other) => {
			if (problem(right, other) === null) return false
			refused++
			return true
		}),
		{ numRuns: COUNT - numRuns },
	)
	t.ok(refused >= COUNT, `${refused} were refused`)
})
