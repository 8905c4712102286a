package accel

import (
	"bytes"
	"encoding/binary"
)

// The probe guest is an ELF file with a PVH entry point, made here byte by byte
// so that it can be read. QEMU's firmware starts it in 32-bit protected mode
// without paging (Xen's "x86/HVM direct boot ABI"). It does what a kernel's
// start does and what slow emulation under KVM cannot do in time
// (reference/machines.md 2b): builds page tables, enters long mode, jumps to the
// higher half, runs a loop there, and ends QEMU through isa-debug-exit.
const (
	loadAt     = 0x100000 // physical address of the code
	tablesAt   = 0x110000 // three page tables of 4 KiB
	memorySize = tablesAt + 3*0x1000 - loadAt
	exitPort   = 0xf4
	exitValue  = 0x10
	// passed is QEMU's exit status after exitValue went to isa-debug-exit.
	passed     = exitValue<<1 | 1
	iterations = 20_000_000
	// higherHalf is where Linux's kernel text lies; the first 2 MiB are mapped
	// there too.
	higherHalf = 0xffffffff80000000
)

func le32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
func le64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

// probeCode is the guest's machine code for loadAt.
func probeCode() []byte {
	var code []byte
	emit := func(parts ...[]byte) {
		for _, p := range parts {
			code = append(code, p...)
		}
	}
	op := func(b ...byte) []byte { return b }
	store := func(address, value uint32) { // mov dword [address], value
		emit(op(0xc7, 0x05), le32(address), le32(value))
	}
	const (
		present, writable, large = 1, 2, 0x80
		table                    = present | writable
	)
	pml4, pdpt, pd := uint32(tablesAt), uint32(tablesAt+0x1000), uint32(tablesAt+0x2000)

	emit(op(0xfa))                      // cli
	store(pml4, pdpt|table)             // address 0 …
	store(pml4+511*8, pdpt|table)       // … and the higher half
	store(pdpt, pd|table)               //
	store(pdpt+510*8, pd|table)         //
	store(pd, large|writable|present)   // lead to the first 2 MiB
	emit(op(0xb8), le32(pml4))          // mov eax, pml4
	emit(op(0x0f, 0x22, 0xd8))          // mov cr3, eax
	emit(op(0x0f, 0x20, 0xe0))          // mov eax, cr4
	emit(op(0x83, 0xc8, 0x20))          // or eax, PAE
	emit(op(0x0f, 0x22, 0xe0))          // mov cr4, eax
	emit(op(0xb9), le32(0xc0000080))    // mov ecx, EFER
	emit(op(0x0f, 0x32))                // rdmsr
	emit(op(0x0d), le32(0x100))         // or eax, LME
	emit(op(0x0f, 0x30))                // wrmsr
	gdtr := len(code) + 3               //
	emit(op(0x0f, 0x01, 0x15), le32(0)) // lgdt [gdtr], filled in below
	emit(op(0x0f, 0x20, 0xc0))          // mov eax, cr0
	emit(op(0x0d), le32(0x80000001))    // or eax, PG | PE
	emit(op(0x0f, 0x22, 0xc0))          // mov cr0, eax
	far := uint32(loadAt + len(code) + 7)
	emit(op(0xea), le32(far), op(8, 0)) // jmp 8:far, into 64-bit code

	higher := uint64(higherHalf) + uint64(loadAt+len(code)+12)
	emit(op(0x48, 0xb8), le64(higher))            // mov rax, higher
	emit(op(0xff, 0xe0))                          // jmp rax
	emit(op(0x48, 0x8d, 0x3d), le32(0x8000))      // lea rdi, [rip + 0x8000]: away from the code, which TCG would translate anew
	emit(op(0xb9), le32(iterations))              // mov ecx, iterations
	emit(op(0x89, 0x0f))                          // again: mov [rdi], ecx
	emit(op(0xff, 0xc9))                          // dec ecx
	emit(op(0x75, 0xfa))                          // jnz again
	emit(op(0xb0, exitValue), op(0xe6, exitPort)) // mov al, exitValue; out exitPort, al
	emit(op(0xf4, 0xeb, 0xfd))                    // hlt; jmp to it

	for len(code)%8 != 0 {
		code = append(code, 0)
	}
	table64 := len(code)
	emit(le64(0), le64(0x00af9a000000ffff)) // GDT: none; 64-bit code, ring 0
	pointer := len(code)
	emit(op(15, 0), le32(uint32(loadAt+table64))) // its limit and address
	copy(code[gdtr:], le32(uint32(loadAt+pointer)))
	return code
}

// probeELF wraps the code in an ELF file for QEMU's -kernel.
func probeELF() []byte {
	const (
		headerSize, programSize = 64, 56
		noteAt                  = headerSize + 2*programSize
		codeAt                  = 0x1000
	)
	// A Xen ELF note of type 18, XEN_ELFNOTE_PHYS32_ENTRY, has the entry point.
	note := bytes.Join([][]byte{le32(4), le32(8), le32(18), []byte("Xen\x00"), le64(loadAt)}, nil)
	code := probeCode()

	type header struct {
		Ident                      [16]byte
		Type, Machine              uint16
		Version                    uint32
		Entry, Phoff, Shoff        uint64
		Flags                      uint32
		Ehsize, Phentsize, Phnum   uint16
		Shentsize, Shnum, Shstrndx uint16
	}
	type program struct {
		Type, Flags                                uint32
		Offset, Vaddr, Paddr, Filesz, Memsz, Align uint64
	}
	var out bytes.Buffer
	for _, part := range []any{
		header{
			Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, Type: 2, Machine: 62, Version: 1,
			Entry: loadAt, Phoff: headerSize, Ehsize: headerSize, Phentsize: programSize, Phnum: 2,
		},
		program{Type: 1, Flags: 7, Offset: codeAt, Vaddr: loadAt, Paddr: loadAt,
			Filesz: uint64(len(code)), Memsz: memorySize, Align: 0x1000},
		program{Type: 4, Flags: 4, Offset: noteAt, Vaddr: noteAt, Paddr: noteAt,
			Filesz: uint64(len(note)), Memsz: uint64(len(note)), Align: 4},
		note,
	} {
		_ = binary.Write(&out, binary.LittleEndian, part) // a bytes.Buffer takes all
	}
	out.Write(make([]byte, codeAt-out.Len()))
	out.Write(code)
	return out.Bytes()
}
