/** The classification of addresses, compared with Node's BlockList. */
import { BlockList } from 'node:net'
import fc from 'fast-check'
import t from 'tap'
import { judge } from '../../../core/fetch/addresses.ts'

/** Blocks that are not globally reachable by IANA's registries of special addresses, and others that we refuse. */
const special = { ipv4: new BlockList(), ipv6: new BlockList() }
const blocks4 = `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
	192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24
	203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 168.63.129.16/32`
const blocks6 = `::/3 4000::/2 8000::/1 2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20`
const add = (blocks: string, family: 'ipv4' | 'ipv6'): void => {
	for (const block of blocks.split(/\s+/)) {
		const [net = '', bits] = block.split('/')
		special[family].addSubnet(net, Number(bits), family)
	}
}
add(blocks4, 'ipv4')
add(blocks6, 'ipv6')

const numbers4 = blocks4.split(/\s+/).map((block) => block.split('/')[0] ?? '')
const ipv4 = fc.oneof(
	fc.ipV4(),
	// Around the edges of the blocks, where mistakes are likely.
	fc.tuple(fc.constantFrom(...numbers4), fc.integer({ min: -3, max: 3 })).map(([net, step]) => {
		const number = net.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0)
		const near = (number + step + 2 ** 32) % 2 ** 32
		return [24, 16, 8, 0].map((shift) => (near >>> shift) & 255).join('.')
	}),
)
const hextet = (max: number): fc.Arbitrary<string> => fc.integer({ min: 0, max }).map((n) => n.toString(16))
const ipv6 = fc
	.tuple(
		fc.oneof(hextet(0xffff), fc.constantFrom('2000', '2001', '2002', '2620', '3fff', '3ffe', '0', 'fd00')),
		fc.oneof(hextet(0xffff), hextet(0x3ff), fc.constantFrom('0', 'db8', '4f', 'fff', '1000', '1ff', '200')),
		fc.oneof(hextet(0xffff), fc.constantFrom('0', '8000')),
		fc.array(hextet(0xffff), { minLength: 5, maxLength: 5 }),
	)
	.map(([a, b, c, rest]) => [a, b, c, ...rest].join(':'))

void t.test('an IPv4 address is public unless a special block contains it, also if IPv4-mapped', async (t) => {
	let open = 0
	fc.assert(
		fc.property(ipv4, (address) => {
			const isPublic = judge(address).kind === 'public'
			if (isPublic) open++
			return isPublic === !special.ipv4.check(address) && judge(`::ffff:${address}`).kind === judge(address).kind
		}),
		{ numRuns: 2000 },
	)
	t.ok(open > 100, `${open} were public`)
})

void t.test('an IPv6 address is public unless a special block contains it', async (t) => {
	let open = 0
	fc.assert(
		fc.property(ipv6, (address) => {
			const isPublic = judge(address).kind === 'public'
			if (isPublic) open++
			return isPublic === !special.ipv6.check(address, 'ipv6')
		}),
		{ numRuns: 2000 },
	)
	t.ok(open > 100, `${open} were public`)
})

void t.test('private addresses differ from those that are always forbidden', async (t) => {
	const kinds = {
		public: ['1.1.1.1', '8.8.8.8', '172.15.255.255', '172.32.0.0', '2606:4700:4700::1111', '::ffff:8.8.8.8'],
		private: ['127.0.0.1', '::1', '10.1.2.3', '192.168.1.1', '100.64.0.1', 'fd12::1', '::ffff:10.0.0.1'],
		forbidden: [
			'0.0.0.0',
			'::',
			'169.254.169.254',
			'fe80::1%eth0',
			'100.100.100.200',
			'fd00:ec2::254',
			'::127.0.0.1',
			'::8.8.8.8',
		],
	}
	for (const [kind, addresses] of Object.entries(kinds))
		for (const address of addresses) t.equal(judge(address).kind, kind, address)
	for (const text of ['', 'localhost', '1.2.3', '[::1]', '1.2.3.4.5', '127.0.0.1/8', '::1::'])
		t.not(judge(text).kind, 'public', JSON.stringify(text))
})
