package disk

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"golang.org/x/sys/unix"
)

// The protocol's numbers (NetworkBlockDevice/nbd, doc/proto.md).
const (
	magicInit    = 0x4e42444d41474943 // "NBDMAGIC"
	magicOption  = 0x49484156454f5054 // "IHAVEOPT"
	magicReply   = 0x0003e889045565a9
	magicRequest = 0x25609513
	magicAnswer  = 0x67446698

	fixedNewstyle, noZeroes = 1, 2

	optAbort, optGo                 = 2, 7
	repAck, repInfo, repUnsupported = 1, 3, 1<<31 + 1
	infoExport                      = 0

	hasFlags, sendFlush, sendFUA, sendTrim, sendZeroes = 1, 1 << 2, 1 << 3, 1 << 5, 1 << 6

	cmdRead, cmdWrite, cmdEnd, cmdFlush, cmdTrim, cmdZeroes = 0, 1, 2, 3, 4, 6

	flagFUA = 1

	maxOption  = 4 << 10
	maxRequest = 32 << 20 // of data; what clients may rely on
)

// Serve serves the disk to the one client on conn until that ends, and takes
// over both: when it returns the connection and the file are closed. An error is
// one of the file's, or a far end that does not keep to the protocol.
func (d *Disk) Serve(conn net.Conn) error {
	r := bufio.NewReaderSize(conn, 256<<10)
	err := d.greet(r, conn)
	if err == nil {
		err = d.requests(r, conn)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		err = nil
	}
	return errors.Join(err, conn.Close(), d.end())
}

func (d *Disk) greet(r io.Reader, w io.Writer) error {
	be := binary.BigEndian
	hello := be.AppendUint16(be.AppendUint64(be.AppendUint64(nil, magicInit), magicOption), fixedNewstyle|noZeroes)
	if _, err := w.Write(hello); err != nil {
		return err
	}
	var flags [4]byte
	if _, err := io.ReadFull(r, flags[:]); err != nil {
		return err
	}
	for {
		var head [16]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return err
		}
		option, n := be.Uint32(head[8:]), be.Uint32(head[12:])
		if be.Uint64(head[:]) != magicOption || n > maxOption {
			return fmt.Errorf("NBD: option %d of %d bytes is none", option, n)
		}
		if _, err := io.CopyN(io.Discard, r, int64(n)); err != nil {
			return err
		}
		reply := func(kind uint32, data []byte) error {
			b := be.AppendUint32(be.AppendUint32(be.AppendUint64(nil, magicReply), option), kind)
			_, err := w.Write(append(be.AppendUint32(b, uint32(len(data))), data...))
			return err
		}
		switch option {
		case optGo:
			// There is one export, whatever it is called.
			info := be.AppendUint64(be.AppendUint16(nil, infoExport), uint64(d.size))
			info = be.AppendUint16(info, hasFlags|sendFlush|sendFUA|sendTrim|sendZeroes)
			return errors.Join(reply(repInfo, info), reply(repAck, nil))
		case optAbort:
			return errors.Join(reply(repAck, nil), io.EOF)
		default:
			if err := reply(repUnsupported, nil); err != nil {
				return err
			}
		}
	}
}

func (d *Disk) requests(r io.Reader, w io.Writer) error {
	be := binary.BigEndian
	var buf []byte
	for {
		var head [28]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return err
		}
		flags, cmd := be.Uint16(head[4:]), be.Uint16(head[6:])
		off, n := int64(be.Uint64(head[16:])), int64(be.Uint32(head[24:]))
		if be.Uint32(head[:]) != magicRequest {
			return errors.New("NBD: not a request")
		}
		if cmd == cmdEnd {
			return io.EOF
		}
		var data []byte
		if cmd == cmdRead || cmd == cmdWrite {
			if n > maxRequest {
				return fmt.Errorf("NBD: a request of %d bytes, at most %d are allowed", n, maxRequest)
			}
			if int64(cap(buf)) < n {
				buf = make([]byte, n)
			}
			data = buf[:n]
		}
		if cmd == cmdWrite {
			if _, err := io.ReadFull(r, data); err != nil {
				return err
			}
		}
		d.gate()
		var err error
		switch {
		case cmd != cmdFlush && (off < 0 || off > d.size || n > d.size-off):
			err = unix.EINVAL
		case cmd == cmdRead:
			err = d.read(data, off)
		case cmd == cmdWrite:
			err = d.write(data, off, n)
		case cmd == cmdZeroes:
			err = d.write(nil, off, n)
		case cmd == cmdTrim:
			err = d.trim(off, n)
		case cmd == cmdFlush:
			err = d.flush()
		default:
			err = unix.EINVAL
		}
		if err == nil && flags&flagFUA != 0 && cmd != cmdRead && cmd != cmdFlush {
			err = d.flush()
		}
		if errors.Is(err, errEnded) {
			continue
		}
		answer := be.AppendUint32(be.AppendUint32(nil, magicAnswer), errno(err))
		answer = append(answer, head[8:16]...)
		if _, werr := w.Write(answer); werr != nil {
			return werr
		}
		if cmd == cmdRead && err == nil {
			if _, werr := w.Write(data); werr != nil {
				return werr
			}
		}
	}
}

// gate waits while the disk is stalled.
func (d *Disk) gate() {
	for {
		d.mu.Lock()
		stall := d.stall
		d.mu.Unlock()
		if stall == nil {
			return
		}
		<-stall
	}
}

// errno is the protocol's number of an error.
func errno(err error) uint32 {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, unix.EINVAL):
		return uint32(unix.EINVAL)
	}
	return uint32(unix.EIO)
}
